"""The report room draws what the others describe (`inkling.figures`): `terminal` for people at a prompt and
`page` as one HTML file that needs nothing else. It knows nothing of how a result was computed.
"""
