enum PlaceholderNetworking {}
