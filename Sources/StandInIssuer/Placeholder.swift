enum PlaceholderStandInIssuer {}
