"""Human evaluation: blinded forms for experts, and what their votes amount to."""
