"""Judges the token on standard input with one library, used as its documentation says; the docstring of a function names the section.

usage: judge.py LIBRARY     for `limited-login catalogue run --exec`: APP_ID, NONCE and JWKS_URL come from the environment

Exit code 0 accepted, 1 refused by an exception that the library documents, 70 any other exception."""

import os
import sys
import traceback

APP_ID, JWKS_URL = os.environ["APP_ID"], os.environ["JWKS_URL"]
FACEBOOK, BASE = "https://www.facebook.com", JWKS_URL.partition("/.well-known")[0]


def pyjwt(token):
    """Usage Examples, "Retrieve RSA signing keys from a JWKS endpoint" and "Issuer Claim (iss)"."""
    import jwt
    key = jwt.PyJWKClient(JWKS_URL).get_signing_key_from_jwt(token)
    jwt.decode(token, key, algorithms=["RS256"], audience=APP_ID, issuer=FACEBOOK)


def authlib(token):
    """"Django OAuth Client", "Parsing id_token": the client registered by its discovery document."""
    from authlib.integrations.django_client import OAuth
    from django.conf import settings
    settings.configure()
    oauth = OAuth()
    oauth.register("facebook", client_id=APP_ID, server_metadata_url=BASE + "/.well-known/openid-configuration")
    oauth.facebook.parse_id_token({"id_token": token}, nonce=os.environ["NONCE"])


def joserfc(token):
    """"JSON Web Token": `decode` and `JWTClaimsRegistry`."""
    import json
    import urllib.request
    from joserfc import jwt
    from joserfc.jwk import KeySet
    with urllib.request.urlopen(JWKS_URL) as answer:
        keys = KeySet.import_key_set(json.load(answer))
    claims = jwt.decode(token, keys, algorithms=["RS256"]).claims
    known = {"iss": FACEBOOK, "aud": APP_ID, "nonce": os.environ["NONCE"]}
    rules = {name: {"essential": True, "value": value} for name, value in known.items()}
    jwt.JWTClaimsRegistry(exp={"essential": True}, sub={"essential": True}, **rules).validate(claims)


def social_auth(token):
    """"Facebook Limited Login": the backend with its one setting, called as its own `authenticate` does."""
    from social_core.backends.facebook_limited import FacebookLimitedLogin
    from social_core.strategy import BaseStrategy

    class Strategy(BaseStrategy):
        settings = {"SOCIAL_AUTH_FACEBOOK_LIMITED_LOGIN_KEY": APP_ID, "SOCIAL_AUTH_FACEBOOK_LIMITED_LOGIN_OIDC_ENDPOINT": BASE}

        def get_setting(self, name):
            return self.settings[name]

        def request_data(self, merge=True):
            return {}

        def build_absolute_uri(self, path=None):
            return path

    FacebookLimitedLogin(Strategy()).validated_response({"access_token": token})


def allauth(token):
    """"Facebook": the provider with an app, called with an `id_token` as in the headless API's "Provider token"."""
    import django
    from django.conf import settings
    own = ["django.contrib." + name for name in ("auth", "contenttypes", "sessions", "messages")]
    settings.configure(
        SECRET_KEY="of this run alone", DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        INSTALLED_APPS=[*own, "allauth", "allauth.account", "allauth.socialaccount", "allauth.socialaccount.providers.facebook"],
        MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware", "allauth.account.middleware.AccountMiddleware"],
        SOCIALACCOUNT_PROVIDERS={"facebook": {"APPS": [{"client_id": APP_ID, "secret": "", "key": ""}]}},
    )
    django.setup()
    from allauth.socialaccount.adapter import get_adapter
    from allauth.socialaccount.providers.facebook.provider import FacebookProvider
    from django.core.management import call_command
    from django.test import RequestFactory
    call_command("migrate", verbosity=0)
    FacebookProvider.limited_login_jwks_url = JWKS_URL
    request = RequestFactory().post("/_allauth/app/v1/auth/provider/token")
    get_adapter().get_provider(request, "facebook").verify_token(request, {"client_id": APP_ID, "id_token": token})


LIBRARIES = {
    "PyJWT": (pyjwt, {"PyJWTError"}), "Authlib": (authlib, {"AuthlibBaseError", "JoseError"}),
    "joserfc": (joserfc, {"JoseError"}), "social-auth-core": (social_auth, {"SocialAuthBaseException"}),
    "django-allauth": (allauth, {"ValidationError"}),
}

if __name__ == "__main__":
    judge, refusals = LIBRARIES[sys.argv[1]]
    try:
        judge(sys.stdin.read())
    except Exception as error:
        if refusals & {kind.__name__ for kind in type(error).__mro__}:
            sys.exit(1)
        traceback.print_exc()
        sys.exit(70)
