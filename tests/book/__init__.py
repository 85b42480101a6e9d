"""Every row of the source texts that asks for a function or a test, and the test that shows it."""
