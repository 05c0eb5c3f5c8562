enum PlaceholderLimitedLogin {}
