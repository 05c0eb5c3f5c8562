#!/usr/bin/env python3
"""A login server. The app begins a login here, logs in at Facebook with the nonce that it gets, and sends the id token.

VERIFY_URL=http://127.0.0.1:8080 VERIFY_KEY=... SESSION_SECRET=... PORT=3000 login.py

Sessions are Flask's own: the cookie holds the session, signed, and comes anew with each change. A client may send an old
cookie again, so it is limited-login that takes each nonce once.
"""

import http.client
import json
import os
import secrets
import sys
import urllib.error
import urllib.request

from flask import Flask, request, session

VERIFY_URL = os.environ.get("VERIFY_URL", "http://127.0.0.1:8080")

app = Flask(__name__)
# Without a secret of your own every session ends with the process.
app.secret_key = os.environ.get("SESSION_SECRET") or secrets.token_hex(32)
app.config |= {
    "SESSION_COOKIE_NAME": "__Host-session",
    "SESSION_COOKIE_SECURE": True,
    "SESSION_COOKIE_HTTPONLY": True,
    "SESSION_COOKIE_SAMESITE": "Lax",
    "MAX_CONTENT_LENGTH": 40_960,
}


class Failure(Exception):
    def __init__(self, status, code):
        super().__init__(code)
        self.status = status


@app.errorhandler(Failure)
def fail(failure):
    return {"error": str(failure)}, failure.status


def ask(path, members):
    """Asks limited-login. A 400 or 401 is about the token. Anything else is an outage and ends no session: 503."""
    fields = {"Content-Type": "application/json", "X-Api-Key": os.environ.get("VERIFY_KEY", "")}
    question = urllib.request.Request(VERIFY_URL + path, json.dumps(members).encode(), fields)
    try:
        try:
            with urllib.request.urlopen(question, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            status, code = error.code, json.load(error)["code"]
    except (OSError, ValueError, LookupError, TypeError, http.client.HTTPException) as error:
        status, code = 503, repr(error)
    # `unauthorized_client` is about this server's own key: no fault of the person's.
    if status in (400, 401) and code != "unauthorized_client":
        raise Failure(status, code)
    print("limited-login cannot tell:", code, file=sys.stderr)
    raise Failure(503, "try_again")


def member(name):
    """A text of the request's JSON object; empty where there is none."""
    body = request.get_json(silent=True)
    value = body.get(name) if isinstance(body, dict) else None
    return value if isinstance(value, str) else ""


@app.post("/login/begin")
def begin():
    nonce, login = ask("/nonces", {})["nonce"], secrets.token_urlsafe(16)
    session.update(login=login, nonce=nonce)
    return {"login": login, "nonce": nonce}


@app.post("/login")
def log_in():
    if "login" not in session or member("login") != session["login"]:
        raise Failure(401, "login_not_begun")
    answer = ask("/verify", {"id_token": member("id_token"), "issued_nonce": True})
    # The nonce is this session's own. Another login's token has a good nonce too, but another one.
    if answer["authentication_token"]["nonce"] != session["nonce"]:
        raise Failure(401, "another_login")
    # Nothing of the session before stays: this is a new one.
    session.clear()
    session["user"] = answer["profile"]["user_id"]
    return {"user": session["user"], "name": answer["profile"].get("name")}


def user():
    if "user" not in session:
        raise Failure(401, "not_logged_in")
    return session["user"]


@app.post("/refresh")
def refresh():
    # The person is the session's, whatever the client says.
    ask("/verify", {"id_token": member("id_token"), "subject": user()})
    return {"user": user()}


@app.get("/me")
def me():
    return {"user": user()}


if __name__ == "__main__":
    app.run("127.0.0.1", int(os.environ.get("PORT", "3000")))
