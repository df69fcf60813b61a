"""A red team as data: submissions and runs of people who want a rank that they have not earned."""
