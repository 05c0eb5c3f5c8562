"""A login in Flask as a first search result writes it: the signature, the app and the hour, and no more. Never copy it."""

import os

import jwt
from flask import Flask, request

app = Flask(__name__)
keys = jwt.PyJWKClient(os.environ["JWKS_URL"])


@app.post("/login")
def log_in():
    token = request.get_json()["id_token"]
    try:
        key = keys.get_signing_key_from_jwt(token).key
        claims = jwt.decode(token, key, algorithms=["RS256"], audience=os.environ["APP_ID"])
    except jwt.PyJWTError:
        return {"error": "invalid token"}, 401
    return {"user": claims["sub"]}
