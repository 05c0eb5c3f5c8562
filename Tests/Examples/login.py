"""A login server. The app begins a login here, logs in at Facebook with the nonce from here, and sends the id token.
It needs Flask and requests; README.md has the command that installs and starts it.

Sessions are Flask's own: the signed cookie holds the session, and each change sets a new cookie. A client may send an old
cookie again, so limited-login takes each nonce only once.
"""

import os
import re
import secrets
import sys
import time

import requests
from flask import Flask, abort, request, session
from werkzeug.exceptions import HTTPException

# A session ends so many seconds after its login or its last refresh.
LIFETIME = 3_600


def setting(name, pattern, meaning):
    value = os.environ.get(name, "")
    return value if re.fullmatch(pattern, value) else sys.exit(f"{name} must be {meaning}.")


VERIFY_URL = setting("VERIFY_URL", "https?://.*[^/]", "the address of limited-login, such as http://127.0.0.1:8080")
VERIFY_KEY = setting("VERIFY_KEY", ".+", "this server's key at limited-login")
app = Flask(__name__)
app.secret_key = setting("SESSION_SECRET", ".{32,}", "a secret of at least 32 random characters")
app.config.update(SESSION_COOKIE_NAME="__Host-session", SESSION_COOKIE_SECURE=True, SESSION_COOKIE_SAMESITE="Lax",
                  SESSION_REFRESH_EACH_REQUEST=False, PERMANENT_SESSION_LIFETIME=LIFETIME, MAX_CONTENT_LENGTH=40_960)
app.register_error_handler(HTTPException, lambda error: ({"error": error.description}, error.code))


def ask(path, members):
    """Asks limited-login. A 400 or 401 is about the token. Anything else is an outage and ends no session: 503."""
    try:
        response = requests.post(VERIFY_URL + path, json=members, headers={"X-Api-Key": VERIFY_KEY}, timeout=10)
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
    return session["user"] if session.get("until", 0) > time.time() else abort(401, "not_logged_in")


@app.post("/login/begin")
def begin():
    nonce, login = ask("/nonces", {})["nonce"], secrets.token_urlsafe(16)
    session.permanent = True
    session.update(login=login, nonce=nonce)
    return {"login": login, "nonce": nonce}


@app.post("/login")
def log_in():
    if "login" not in session or member("login") != session["login"]:
        abort(401, "login_not_begun")
    # The nonce comes from the session. limited-login compares it with the token's, and takes it once.
    profile = ask("/verify", {"id_token": member("id_token"), "nonce": session["nonce"]})["profile"]
    # This login is over.
    del session["login"], session["nonce"]
    session.update(user=profile["user_id"], until=int(time.time()) + LIFETIME)
    return {"user": user(), "name": profile.get("name")}


@app.post("/refresh")
def refresh():
    # The user comes from the session, never from the client.
    ask("/verify", {"id_token": member("id_token"), "subject": user()})
    session["until"] = int(time.time()) + LIFETIME
    return {"user": user()}


@app.post("/logout")
def log_out():
    session.clear()
    return {}


@app.get("/me")
def me():
    return {"user": user()}
