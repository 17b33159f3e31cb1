"""The Bedrock Converse API."""
