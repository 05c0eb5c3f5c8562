enum PlaceholderJOSE {}
