"""Which keys found in the data may be shown."""
