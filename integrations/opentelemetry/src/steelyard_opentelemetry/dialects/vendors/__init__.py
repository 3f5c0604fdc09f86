"""Vendors of tracing and gateways, whose SDKs write spans in their own names."""
