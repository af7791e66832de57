"""Networks: layers, parameters and how they are registered."""
