enum PlaceholderKeySets {}
