"""Bad input: every kind of it gives an error that names the argument; nothing ends the process."""
