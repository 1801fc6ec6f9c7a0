"""Makes the tables again from the log, to replace the live ones or to check them."""
