"""Other verifiers of RS256 tokens, if they are installed: one thread each, keep-alive, no log."""

import json
import os
import pathlib
import shutil
import subprocess

from .processes import HERE, WORK, Program, free_path, harness, output
from .tokens import APP, ask, auth, bearer

import proxies  # noqa: E402  # the folder of the scripts is on the path now


def haproxy(tokens, unix=False):
    """jwt_verify with a key file. It checks the algorithm, audience and expiry, and answers an empty 200.

    The issuer is not checked: HAProxy 2.6 finds no value in a claim with the escaped slashes of Facebook's JSON.
    """
    binary = shutil.which("haproxy")
    if not binary:
        return None
    address = free_path() if unix else harness.free_port()
    command = proxies.haproxy(harness.Folder(WORK / "haproxy"), f"""
    timeout http-keep-alive 60s
global
    nbthread 1
    maxconn 5000
    tune.bufsize 32768
frontend verify
    bind {f"unix@{address}" if unix else f"127.0.0.1:{address}"}
    http-request set-var(txn.bearer) http_auth_bearer
    http-request set-var(txn.alg) var(txn.bearer),jwt_header_query('$.alg')
    http-request set-var(txn.aud) var(txn.bearer),jwt_payload_query('$.aud')
    http-request set-var(txn.exp) var(txn.bearer),jwt_payload_query('$.exp','int')
    http-request set-var(txn.now) date()
    http-request deny deny_status 401 unless {{ var(txn.alg) -m str RS256 }}
    http-request deny deny_status 401 unless {{ var(txn.aud) -m str {APP} }}
    http-request deny deny_status 401 if {{ var(txn.exp),sub(txn.now) -m int lt 0 }}
    http-request deny deny_status 401 unless {{ var(txn.bearer),jwt_verify(txn.alg,"{WORK}/key.pem") -m int 1 }}
    http-request return status 200
""", 60)
    version = output(binary, "-v").split()[2].split("-")[0]
    program = Program("haproxy", command, address, "0")
    return f"HAProxy {version} `jwt_verify`" + (", Unix socket" if unix else ""), program, bearer


def envoy(tokens, cached=False):
    """jwt_authn with a local JWK Set. It checks issuer and audience, and answers an empty 200. Its cache keeps whole tokens,
    as many as this service keeps signatures."""
    binary = shutil.which(os.environ.get("ENVOY") or "envoy")
    if not binary:
        return None
    address = harness.free_port()
    provider = {"issuer": "https://www.facebook.com", "audiences": [APP], "forward": False,
                "local_jwks": {"filename": str(WORK / "jwks.json")}}
    if cached:
        provider["jwt_cache_config"] = {"jwt_cache_size": 10_000}
    name = "envoy" + ("-cached" if cached else "")
    types = "type.googleapis.com/envoy.extensions.filters.http"
    filters = [
        {"name": "envoy.filters.http.jwt_authn", "typed_config": {
            "@type": f"{types}.jwt_authn.v3.JwtAuthentication", "providers": {"facebook": provider},
            "rules": [{"match": {"prefix": "/"}, "requires": {"provider_name": "facebook"}}]}},
        {"name": "envoy.filters.http.router", "typed_config": {"@type": f"{types}.router.v3.Router"}},
    ]
    manager = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "verify", "http_filters": filters,
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
            {"match": {"prefix": "/"}, "direct_response": {"status": 200}}]}]}}
    place = {"socket_address": {"address": "127.0.0.1", "port_value": address}}
    listener = {"address": place, "filter_chains": [
        {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}]}
    (WORK / f"{name}.json").write_text(json.dumps({"static_resources": {"listeners": [listener]}}))
    version = next(part for part in output(binary, "--version").split("/") if part[:1].isdigit() and "." in part)
    program = Program(name, [binary, "--concurrency", "1", "--disable-hot-restart", "-l", "off",
                             "-c", WORK / f"{name}.json"], address, "0")
    return f"Envoy {version} `jwt_authn`" + (" with `jwt_cache_config`" if cached else ""), program, bearer


def apache(tokens):
    """mod_auth_openidc as an OAuth 2.0 resource server with the key in a file. It checks audience and expiry, and answers a
    file of three bytes. The threads of its one process share the processor."""
    if not proxies.has_module("auth_openidc"):
        return None
    folder, port = harness.Folder(WORK / "apache"), harness.free_port()
    (folder.path / "root").mkdir(exist_ok=True)
    (folder.path / "root" / "index.html").write_text("ok\n")
    key = tokens.key_of(tokens.tokens[0]["id_token"])["kid"]
    command = proxies.apache(folder, ["authn_core", "authz_user", "dir", "auth_openidc"], f"""
LogLevel crit
Listen 127.0.0.1:{port}
ServerLimit 1
ThreadLimit 128
ThreadsPerChild 128
MaxRequestWorkers 128
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
LimitRequestFieldSize 16384
DocumentRoot {folder.path}/root
OIDCOAuthVerifyCertFiles {key}#{WORK}/key.pem
OIDCOAuthRemoteUserClaim sub
<Location />
  AuthType oauth20
  Require claim aud:{APP}
</Location>
""")
    version = output(proxies.APACHE, "-v").split("Apache/")[-1].split()[0]
    return f"Apache {version} + mod_auth_openidc", Program("apache", [*command, "-X"], port, "0"), bearer


def golang(tokens):
    """net/http and golang-jwt from Debian's packages. It answers the claims."""
    source = pathlib.Path("/usr/share/gocode/src/github.com/golang-jwt/jwt")
    if not shutil.which("go") or not source.exists():
        return None
    binary = WORK / "golang-jwt"
    environment = dict(os.environ, GOPATH="/usr/share/gocode", GO111MODULE="off", GOFLAGS="", GOCACHE=str(WORK / "go"))
    subprocess.run(["go", "build", "-o", binary, "main.go"], cwd=HERE / "Peers" / "golang-jwt", env=environment,
                   check=True)
    key = tokens.key_of(tokens.tokens[0]["id_token"])["kid"]
    port = harness.free_port()
    program = Program("golang", [binary, f"127.0.0.1:{port}", WORK / "key.pem", key, APP], port, "0")
    return f"Go {output('go', 'version').split()[2][2:]} + golang-jwt", program, None


def hummingbird(tokens):
    """The framework and the JOSE library most Swift servers use. It answers the claims. The first build takes minutes."""
    package = HERE / "Peers" / "hummingbird-jwt-kit"
    output("swift", "build", "-c", "release", "--package-path", package, seconds=1800)
    binary = package / ".build" / "release" / "hummingbird-jwt-kit"
    if not binary.exists():
        return None
    pins = {pin["identity"]: pin["state"].get("version") for pin in
            json.loads((package / "Package.resolved").read_text())["pins"]}
    (WORK / "peer-jwks.json").write_text(json.dumps(tokens.data["jwks"]))
    port = harness.free_port()
    program = Program("hummingbird", [binary, port, WORK / "peer-jwks.json", APP], port, "0")
    return f"Hummingbird {pins['hummingbird']} + jwt-kit {pins['jwt-kit']}", program, None


PEERS = {"HAProxy": haproxy, "HAProxy, Unix socket": lambda tokens: haproxy(tokens, unix=True), "Envoy": envoy,
         "Apache + mod_auth_openidc": apache, "Go + golang-jwt": golang, "Hummingbird + jwt-kit": hummingbird}


# The peers that can do the work of `/auth` in a gateway.
GATEWAY_PEERS = {"HAProxy": haproxy, "Envoy": envoy, "Envoy with jwt_cache_config": lambda tokens: envoy(tokens, cached=True),
                 "Apache + mod_auth_openidc": apache}


def requests_for(style, tokens):
    if style in (auth, bearer):
        return [style(entry["id_token"]) for entry in tokens]
    return [ask(entry) for entry in tokens]
