"""What a Monitor was asked to do: options in code, variables and a file."""
