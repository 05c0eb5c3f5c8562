"""The libraries under comparison, each used as its documentation says; the docstring of a class names the section.

`judge` takes a token and the nonce of the login, and raises if the library refuses the token."""

import importlib.metadata
import json
import subprocess

import harness

APP_ID = "123456789012345"


class Refused(Exception):
    """A refusal by another process, which cannot raise an exception itself."""


class Library:
    """`packages` names the packages; `refusals` are the exceptions that the library documents for a token it refuses."""

    refusals = (Refused,)

    def __init__(self, base):
        self.base = base

    def name(self):
        return ", ".join(f"{package} {importlib.metadata.version(package)}" for package in self.packages)


class PyJWT(Library):
    """Usage Examples, "Retrieve RSA signing keys from a JWKS endpoint" and "Issuer Claim (iss)"."""

    packages = ["PyJWT"]

    def __init__(self, base):
        super().__init__(base)
        import jwt
        self.jwt = jwt
        self.refusals = (jwt.PyJWTError,)
        self.client = jwt.PyJWKClient(base + "/jwks")

    def judge(self, token, nonce):
        key = self.client.get_signing_key_from_jwt(token)
        self.jwt.decode(token, key, algorithms=["RS256"], audience=APP_ID, issuer="https://www.facebook.com")


class Authlib(Library):
    """"Django OAuth Client", "Parsing id_token": the client registered by its discovery document."""

    packages = ["Authlib"]

    def __init__(self, base):
        super().__init__(base)
        from authlib.common.errors import AuthlibBaseError
        from authlib.integrations.django_client import OAuth
        from joserfc.errors import JoseError
        self.refusals = (AuthlibBaseError, JoseError)
        self.oauth = OAuth()
        self.oauth.register("facebook", client_id=APP_ID, server_metadata_url=base + "/.well-known/openid-configuration")

    def judge(self, token, nonce):
        self.oauth.facebook.parse_id_token({"id_token": token}, nonce=nonce)


class SocialAuth(Library):
    """"Facebook Limited Login": the backend with its one setting, called as its own `authenticate` does."""

    packages = ["social-auth-core"]

    def __init__(self, base):
        super().__init__(base)
        from social_core.backends.facebook_limited import FacebookLimitedLogin
        from social_core.exceptions import SocialAuthBaseException
        from social_core.strategy import BaseStrategy
        self.refusals = (SocialAuthBaseException,)

        class Strategy(BaseStrategy):
            settings = {"SOCIAL_AUTH_FACEBOOK_LIMITED_LOGIN_KEY": APP_ID, "SOCIAL_AUTH_FACEBOOK_LIMITED_LOGIN_OIDC_ENDPOINT": base}

            def get_setting(self, name):
                return self.settings[name]

            def request_data(self, merge=True):
                return {}

            def build_absolute_uri(self, path=None):
                return path

        self.backend = FacebookLimitedLogin(Strategy())

    def judge(self, token, nonce):
        self.backend.validated_response({"access_token": token})


class Allauth(Library):
    """"Facebook": the provider with an app, called with an `id_token` as in the headless API's "Provider token"."""

    packages = ["django-allauth"]

    def __init__(self, base):
        super().__init__(base)
        from allauth.socialaccount.adapter import get_adapter
        from allauth.socialaccount.providers.facebook.provider import FacebookProvider
        from django.core.exceptions import ValidationError
        from django.test import RequestFactory
        self.refusals = (ValidationError,)
        FacebookProvider.limited_login_jwks_url = base + "/jwks"
        self.request = RequestFactory().post("/_allauth/app/v1/auth/provider/token")
        self.provider = get_adapter().get_provider(self.request, "facebook")

    def judge(self, token, nonce):
        self.provider.verify_token(self.request, {"client_id": APP_ID, "id_token": token})


class JWTKit(Library):
    """The README, "Verifying" and "Custom Payloads"; see jwt-kit-judge."""

    def __init__(self, base, program, keys):
        super().__init__(base)
        self.process = subprocess.Popen(
            [program, keys, APP_ID], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )

    def name(self):
        return "jwt-kit 5.7.1"

    def judge(self, token, nonce):
        self.process.stdin.write(token + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer.startswith("accepted"):
            raise Refused(answer)


class LimitedLogin(Library):
    """`POST /verify` of the service, with the nonce of the login."""

    def __init__(self, base, service, version):
        super().__init__(base)
        self.service = service
        self.version = version

    def name(self):
        return f"limited-login {self.version}"

    def judge(self, token, nonce):
        status, answer = harness.request(self.service.port, "POST", "/verify", json.dumps({"id_token": token, "nonce": nonce}))
        if status == 401:
            raise Refused(json.loads(answer)["code"])
        if status != 200:
            raise RuntimeError(answer)


def set_up_django():
    """Configures Django as django-allauth's Quickstart says, with a database in memory."""
    import django
    from django.conf import settings
    settings.configure(
        SECRET_KEY="of this run alone",
        INSTALLED_APPS=[
            "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "django.contrib.messages",
            "allauth", "allauth.account", "allauth.socialaccount", "allauth.socialaccount.providers.facebook",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware", "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware", "allauth.account.middleware.AccountMiddleware",
        ],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        SOCIALACCOUNT_PROVIDERS={"facebook": {"APPS": [{"client_id": APP_ID, "secret": "", "key": ""}]}},
    )
    django.setup()
    from django.core.management import call_command
    call_command("migrate", verbosity=0)
