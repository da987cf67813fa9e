"""What the project is checked and released with. Not part of the wheel."""
