"""Bad values of all arguments, made from their declarations."""
