"""Credentials of clouds: signatures of AWS, tokens of Google and of Microsoft Entra."""
