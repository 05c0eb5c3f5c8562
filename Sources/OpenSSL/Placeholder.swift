enum PlaceholderOpenSSL {}
