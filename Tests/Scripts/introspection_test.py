#!/usr/bin/env python3
"""Lets mod_auth_openidc (Debian: libapache2-mod-auth-openidc) guard an application as an OAuth resource server. It asks
/introspect, with each of its ways to show the caller's key.

usage: introspection_test.py [--binary FILE]
Without the module or Apache the test is named and skipped. The exit code is 1 if anything fails.
"""

import os
import sys

import harness
import live
import proxies
import wsgi_application
from attack_parts import certificates
from dpop_test import Apache
from harness import check, request

# The ways in which the module shows the key of the caller `backend`. The third one works only together with an id and a secret.
METHODS = ["client_secret_basic", "client_secret_post", "bearer_access_token"]


def guard(service, method, key, application, folder):
    return Apache("auth_openidc", [
        "OIDCCryptoPassphrase of-no-use-without-a-login", "OIDCOAuthRemoteUserClaim sub", f"OIDCCABundlePath {folder.path}/ca.pem",
        f"OIDCOAuthIntrospectionEndpoint https://localhost:{service.port}/introspect",
        f"OIDCOAuthIntrospectionEndpointAuth {method}", "OIDCOAuthClientID backend", f"OIDCOAuthClientSecret {key}",
        # Ask anew for every request.
        f"OIDCOAuthIntrospectionClientAuthBearerToken {key}", "OIDCOAuthTokenIntrospectionInterval -1",
        "<Location />", "AuthType oauth20", "Require valid-user", "</Location>",
    ], application)


def ask(apache, token):
    """The status that a client gets."""
    return request(apache.port, "GET", "/orders", None, {"Authorization": f"Bearer {token}"} if token else {})[0]


def test(service, issuer, method, *rest):
    with guard(service, method, service.key, *rest) as apache:
        for title, token, expected in [
            ("a good token", issuer.token(), 200), ("an expired token", issuer.expired(), 401),
            ("another app's token", issuer.foreign(), 401), ("a made-up token", "made-up", 401), ("no token", None, 401),
            # About the longest token that fits into a field of httpd.
            ("a token with 200 friends", issuer.token(user_friends=[str(10**16 + number) for number in range(200)]), 200),
        ]:
            status = ask(apache, token)
            check(status == expected, f"{method}: {title} is {expected}" + (f", not {status}" if status != expected else ""))
    # With a wrong key of its own the module answers 401, as for every failure. Its log names the cause.
    for title, way, key in [("a wrong key", method, "another-key"), ("no key", "none", service.key)]:
        with guard(service, way, key, *rest) as apache:
            status = ask(apache, issuer.token())
            is_told = apache.wait_for("invalid_client") and apache.wait_for("error_description")
            check(status == 401 and is_told, f"{method}: with {title} nothing passes ({status}), and the module's log says why")


def main():
    program = harness.arguments(__doc__).binary
    if not os.path.exists(f"{proxies.MODULES}/mod_auth_openidc.so") or not os.path.exists(proxies.APACHE):
        harness.skip("libapache2-mod-auth-openidc is not installed")
        return 0
    application = f"127.0.0.1:{wsgi_application.start().server_port}"
    with live.Issuer(program) as issuer, harness.Folder() as folder:
        # The module accepts only https URLs.
        with live.Service(program, issuer.jwks_url, **certificates(folder)) as service:
            service.wait_until_ready()
            for method in METHODS:
                test(service, issuer, method, application, folder)
    return 1 if harness.failures else 0


if __name__ == "__main__":
    sys.exit(main())
