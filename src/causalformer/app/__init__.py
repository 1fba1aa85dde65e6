"""The local app: upload a file, watch the discovery, explore, compare and download."""
