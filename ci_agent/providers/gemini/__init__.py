"""The Gemini API, of Google's own servers and of Vertex."""
