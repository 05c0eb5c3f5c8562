#!/usr/bin/env python3
"""A login server. The app begins a login here, logs in at Facebook with the nonce from here, and sends the id token.

VERIFY_URL=http://127.0.0.1:8080 VERIFY_KEY=... SESSION_SECRET=... PORT=3000 login.py     (needs flask and requests)

Sessions are Flask's own: the signed cookie holds the session, and each change sets a new cookie. A client may send an old
cookie again, so limited-login takes each nonce only once.
"""

import os
import secrets

import requests
from flask import Flask, abort, request, session
from werkzeug.exceptions import HTTPException

VERIFY_URL = os.environ.get("VERIFY_URL", "http://127.0.0.1:8080")

app = Flask(__name__)
app.secret_key = os.environ["SESSION_SECRET"]
app.config.update(SESSION_COOKIE_NAME="__Host-session", SESSION_COOKIE_SECURE=True, SESSION_COOKIE_SAMESITE="Lax",
                  MAX_CONTENT_LENGTH=40_960)


def ask(path, members):
    """Asks limited-login. A 400 or 401 is about the token. Anything else is an outage and ends no session: 503."""
    fields = {"X-Api-Key": os.environ.get("VERIFY_KEY", "")}
    try:
        response = requests.post(VERIFY_URL + path, json=members, headers=fields, timeout=10)
        answer = response.json()
        if response.ok:
            return answer
        status, code = response.status_code, answer["code"]
    except (requests.RequestException, LookupError, TypeError) as error:
        status, code, answer = 503, None, error
    # `unauthorized_client` is about this server's own key, not about the token.
    if status in (400, 401) and code != "unauthorized_client":
        abort(status, code)
    app.logger.error("limited-login cannot tell: %s", answer)
    abort(503, "try_again")


def member(name):
    body = request.get_json()
    return body.get(name) if isinstance(body, dict) else None


def user():
    return session.get("user") or abort(401, "not_logged_in")


@app.post("/login/begin")
def begin():
    nonce, login = ask("/nonces", {})["nonce"], secrets.token_urlsafe(16)
    session.update(login=login, nonce=nonce)
    return {"login": login, "nonce": nonce}


@app.post("/login")
def log_in():
    if "login" not in session or member("login") != session["login"]:
        abort(401, "login_not_begun")
    answer = ask("/verify", {"id_token": member("id_token"), "issued_nonce": True})
    # The token must have this session's nonce: another login's token has a good nonce too.
    if answer["authentication_token"]["nonce"] != session["nonce"]:
        abort(401, "another_login")
    # This is a new session: nothing of the old one stays.
    session.clear()
    session["user"] = answer["profile"]["user_id"]
    return {"user": session["user"], "name": answer["profile"].get("name")}


@app.post("/refresh")
def refresh():
    # The user comes from the session, never from the client.
    ask("/verify", {"id_token": member("id_token"), "subject": user()})
    return {"user": user()}


@app.get("/me")
def me():
    return {"user": user()}


@app.errorhandler(HTTPException)
def fail(error):
    return {"error": error.description}, error.code


if __name__ == "__main__":
    app.run("127.0.0.1", int(os.environ.get("PORT", "3000")))
