enum PlaceholderHTTP1 {}
