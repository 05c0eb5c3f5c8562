enum PlaceholderVerificationService {}
