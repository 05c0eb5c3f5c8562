"""Independent verifiers of own_token_test.py, in ten languages: the smallest program that each library's documentation suggests.

A program reads a token on its standard input. Its environment has ISSUER, AUDIENCE, ALGORITHM, JWKS (the URL of the key set), and
SET and PEM (files of the key set and of the first key). It ends with 0 if the token passes. A program in `SIGNATURES` checks the
signature alone and prints the claims, which are judged here.
"""

import contextlib
import json
import os
import shutil
import time

import harness

# Debian's packages for Go and Node.
GO, NODE = "/usr/share/gocode/src/", "/usr/share/nodejs"
PACKAGES = ["python-jose==3.5.0", "jwcrypto==1.5.6", "google-auth==2.40.3", "josepy==2.2.0", "pyjwkest==1.4.2",
            "cryptojwt==1.11.0", "jwskate==0.12.2"]
START = """
import json, os, sys, urllib.request
token, alg, iss, aud = sys.stdin.read(), *(os.environ[name] for name in ("ALGORITHM", "ISSUER", "AUDIENCE"))
keys = json.load(urllib.request.urlopen(os.environ["JWKS"]))
"""
# The whole judgement: (language, what must be there, code). Python's modules come from PyPI, the rest from Debian.
LIBRARIES = {
    "python-jose": ("python", "jose.jwt", START + """
from jose import jwt
jwt.decode(token, keys, [alg], issuer=iss, audience=aud, options={"require_exp": True})["client_id"]
"""),
    "jwcrypto": ("python", "jwcrypto.jwt", START + """
from jwcrypto import jwk, jwt
judged = jwt.JWT(algs=[alg], check_claims={"iss": iss, "aud": aud, "exp": None, "client_id": None}, expected_type="JWS")
judged.leeway = 0
judged.deserialize(token, jwk.JWKSet.from_json(json.dumps(keys)))
"""),
    "google-auth": ("python", "google.auth.jwt", START + """
from google.auth import jwt
pem, kid = open(os.environ["PEM"], "rb").read(), keys["keys"][0]["kid"]
claims = jwt.decode(token, certs={kid: pem}, audience=aud)
assert jwt.decode_header(token)["alg"] == alg and claims["iss"] == iss and claims["client_id"]
"""),
    "jwskate": ("python", "jwskate", START + """
from jwskate import JwkSet, SignedJwt
SignedJwt(token).validate(JwkSet(keys), alg=alg, issuer=iss, audience=aud, client_id=lambda text: bool(text))
"""),
    "ruby-jwt": ("ruby", "/usr/share/doc/ruby-jwt", """
require "jwt"
require "json"
set = JSON.parse(File.read(ENV["SET"]), symbolize_names: true)
JWT.decode($stdin.read, nil, true, algorithms: [ENV["ALGORITHM"]], jwks: set, iss: ENV["ISSUER"], verify_iss: true,
           aud: ENV["AUDIENCE"], verify_aud: true, required_claims: ["exp", "client_id"])
"""),
    "Crypt::JWT": ("perl", "/usr/share/perl5/Crypt/JWT.pm", """
use Crypt::JWT "decode_jwt";
open(my $file, "<", $ENV{SET});
my $claims = decode_jwt(token => <STDIN>, kid_keys => join("", <$file>), accepted_alg => $ENV{ALGORITHM}, verify_exp => 1,
    verify_iss => sub { $_[0] eq $ENV{ISSUER} }, verify_aud => sub { $_[0] eq $ENV{AUDIENCE} });
exit($claims->{client_id} ? 0 : 1);
"""),
    "go-oidc": ("go", GO + "github.com/coreos/go-oidc", """
provider, err := oidc.NewProvider(context.Background(), os.Getenv("ISSUER"))
check(err)
config := oidc.Config{ClientID: os.Getenv("AUDIENCE"), SupportedSigningAlgs: []string{os.Getenv("ALGORITHM")}}
judged, err := provider.Verifier(&config).Verify(context.Background(), token)
check(err)
var claims struct{ ClientID string `json:"client_id"` }
check(judged.Claims(&claims))
demand(claims.ClientID != "")
"""),
    "golang-jwt": ("go", GO + "github.com/golang-jwt/jwt", """
pem, err := ioutil.ReadFile(os.Getenv("PEM"))
check(err)
claims := jwt.MapClaims{}
_, err = jwt.NewParser(jwt.WithValidMethods([]string{os.Getenv("ALGORITHM")})).ParseWithClaims(token, claims,
    func(token *jwt.Token) (interface{}, error) {
        if token.Method.Alg() == "ES256" { return jwt.ParseECPublicKeyFromPEM(pem) }
        return jwt.ParseRSAPublicKeyFromPEM(pem)
    })
check(err)
demand(claims.VerifyIssuer(os.Getenv("ISSUER"), true) && claims.VerifyAudience(os.Getenv("AUDIENCE"), true) &&
    claims.VerifyExpiresAt(time.Now().Unix(), true) && claims["client_id"] != nil)
"""),
    "go-jose": ("go", GO + "gopkg.in/square/go-jose.v2/jwt", """
file, err := ioutil.ReadFile(os.Getenv("SET"))
check(err)
var set jose.JSONWebKeySet
check(json.Unmarshal(file, &set))
signed, err := jwt.ParseSigned(token)
check(err)
demand(signed.Headers[0].Algorithm == os.Getenv("ALGORITHM"))
var claims struct { jwt.Claims; ClientID string `json:"client_id"` }
check(signed.Claims(set.Key(signed.Headers[0].KeyID)[0].Key, &claims))
expected := jwt.Expected{Issuer: os.Getenv("ISSUER"), Audience: jwt.Audience{os.Getenv("AUDIENCE")}, Time: time.Now()}
check(claims.ValidateWithLeeway(expected, 0))
demand(claims.ClientID != "" && claims.Expiry != nil)
"""),
}
# The signature alone.
SIGNATURES = {
    "josepy": ("python", "josepy", START + """
import josepy
jws, kid = josepy.JWS.from_compact(token.encode()), keys["keys"][0]["kid"]
assert jws.signature.combined.alg.name == alg and jws.signature.combined.kid == kid
assert jws.verify(josepy.JWK.from_json(keys["keys"][0]))
print(jws.payload.decode())
"""),
    "pyjwkest": ("python", "jwkest.jws", START + """
from jwkest.jws import JWS
from jwkest.jwk import KEYS
known = KEYS()
known.load_jwks(json.dumps(keys))
print(json.dumps(JWS(alg=alg).verify_compact(token, keys=list(known))))
"""),
    "cryptojwt": ("python", "cryptojwt.jws.jws", START + """
from cryptojwt.jwk.jwk import key_from_jwk_dict
from cryptojwt.jws.jws import factory
print(json.dumps(factory(token, alg=alg).verify_compact(token, [key_from_jwk_dict(key) for key in keys["keys"]], sigalg=alg)))
"""),
    "json-jwt": ("ruby", "/usr/share/doc/ruby-json-jwt", """
require "json/jwt"
set = JSON::JWK::Set.new(JSON.parse(File.read(ENV["SET"])))
puts JSON::JWT.decode($stdin.read, set, [ENV["ALGORITHM"].to_sym]).to_json
"""),
    "erlang-jose": ("erlang", "/usr/lib/erlang/lib/jose-1.11.5", """#!/usr/bin/env escript
main(_) ->
    {ok, Set} = file:read_file(os:getenv("SET")),
    {match, [Key]} = re:run(Set, "\\\\[(.*)\\\\]", [{capture, [1], binary}]),
    {true, Claims, _} = jose_jws:verify_strict(jose_jwk:from(Key), [list_to_binary(os:getenv("ALGORITHM"))],
                                               list_to_binary(io:get_line(""))),
    io:put_chars(Claims).
"""),
    "JDK": ("java", "/usr/bin/java", """
import java.security.*;
import java.util.Base64;
public class Verifier {
    public static void main(String[] none) throws Exception {
        String[] parts = new String(System.in.readAllBytes()).split("[.]", -1);
        byte[] header = Base64.getUrlDecoder().decode(parts[0]);
        if (!new String(header).contains("\\"alg\\":\\"" + System.getenv("ALGORITHM") + "\\"")) System.exit(1);
        String pem = java.nio.file.Files.readString(java.nio.file.Path.of(System.getenv("PEM"))).replaceAll("-+[^-]+-+|\\\\s", "");
        boolean isRSA = System.getenv("ALGORITHM").equals("RS256");
        Signature signature = Signature.getInstance(isRSA ? "SHA256withRSA" : "SHA256withECDSAinP1363Format");
        var spec = new java.security.spec.X509EncodedKeySpec(Base64.getDecoder().decode(pem));
        signature.initVerify(KeyFactory.getInstance(isRSA ? "RSA" : "EC").generatePublic(spec));
        signature.update((parts[0] + "." + parts[1]).getBytes());
        if (!signature.verify(Base64.getUrlDecoder().decode(parts[2]))) System.exit(1);
        System.out.print(new String(Base64.getUrlDecoder().decode(parts[1])));
    }
}
"""),
    "PHP": ("php", "/usr/bin/php", r"""<?php
[$header, $claims, $signature] = array_map(fn($part) => base64_decode(strtr($part, "-_", "+/")), explode(".", $token = stream_get_contents(STDIN)));
if (json_decode($header)->alg !== getenv("ALGORITHM")) exit(1);
if (getenv("ALGORITHM") === "ES256") {
    if (strlen($signature) !== 64) exit(1);
    $integer = fn($part) => ord(ltrim($part, "\0")) > 127 ? "\0" . ltrim($part, "\0") : ltrim($part, "\0");
    $both = array_map(fn($part) => "\x02" . chr(strlen($integer($part))) . $integer($part), str_split($signature, 32));
    $signature = "\x30" . chr(strlen(implode($both))) . implode($both);
}
$signed = substr($token, 0, strrpos($token, "."));
if (openssl_verify($signed, $signature, file_get_contents(getenv("PEM")), OPENSSL_ALGO_SHA256) !== 1) exit(1);
echo $claims;
"""),
    "WebCrypto": ("node", "/usr/bin/node", """
import { readFileSync } from "node:fs";
const [header, claims, signature] = readFileSync(0, "utf8").split(".");
const { alg, kid } = JSON.parse(Buffer.from(header, "base64url"));
if (alg !== process.env.ALGORITHM) process.exit(1);
const jwk = JSON.parse(readFileSync(process.env.SET)).keys.find((key) => key.kid === kid);
const kind = alg === "ES256" ? { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } : { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
const key = await crypto.subtle.importKey("jwk", jwk, kind, false, ["verify"]);
const isGood = await crypto.subtle.verify(kind, key, Buffer.from(signature, "base64url"), Buffer.from(`${header}.${claims}`));
if (!isGood) process.exit(1);
console.log(Buffer.from(claims, "base64url").toString());
"""),
    "latchset jose": ("sh", "/usr/bin/jose", 'jose jws ver -i - -k "$SET" -O -'),
    "rhonabwy": ("sh", "/usr/bin/rnbyc", 'rnbyc -t "$(cat)" -P "$SET" | grep -v "^Token"'),
}
ENDINGS = {"python": "py", "ruby": "rb", "perl": "pl", "erlang": "escript", "java": "java", "php": "php",
           "node": "mjs", "sh": "sh"}
RUN = {"go": ["go"], "ruby": ["ruby"], "perl": ["perl"], "erlang": ["escript"], "java": ["java"], "php": ["php"], "node": ["node"], "sh": ["bash", "-o", "pipefail"]}
IMPORTS = {"bufio": "bufio", "fmt": "fmt", "os": "os", "context": "context", "json": "encoding/json", "ioutil": "io/ioutil", "time": "time", "oidc": GO + "github.com/coreos/go-oidc",
           "jose": GO + "gopkg.in/square/go-jose.v2"}


def go(needs, code, stdin=True):
    """A Go program; with `stdin` it has read its token."""
    if stdin:
        code = "input, err := ioutil.ReadAll(os.Stdin)\ncheck(err)\ntoken := string(input)\n" + code
    names = {name: path.removeprefix(GO) for name, path in (IMPORTS | {"jwt": needs}).items() if f"{name}." in code or name == "os"}
    imports = "\n".join(f'{name} "{path}"' for name, path in names.items())
    return (f"package main\nimport (\n{imports}\n)\nfunc check(err error) {{ if err != nil {{ println(err.Error()); os.Exit(1) }} }}\n"
            "func demand(holds bool) { if !holds { os.Exit(1) } }\n"
            "func main() {\n" + code + "}\n")


def compiled(folder, needs, code, stdin=True):
    (folder / "verifier.go").write_text(go(needs, code, stdin))
    environment = os.environ | {"GO111MODULE": "off", "GOPATH": GO.removesuffix("/src/"), "GOCACHE": str(folder.parent / "go")}
    harness.output(["go", "build", "-o", folder / "verifier", folder / "verifier.go"], env=environment)
    return folder / "verifier"


def command(place, language, needs, code):
    """The program of a verifier, compiled where its language needs it; None if it is not installed."""
    if language == "python":
        is_there = not harness.run([place.python, "-W", "ignore", "-c", f"import {needs}"]).returncode
        return [place.python, "-W", "ignore", "-c", code] if is_there else None
    if not os.path.exists(needs) or not shutil.which(RUN[language][0]):
        return None
    folder = place.folder / f"verifier-{len(list(place.folder.iterdir()))}"
    folder.mkdir()
    if language == "go":
        return [compiled(folder, needs, code)]
    if language == "node":
        (folder / "node_modules").symlink_to(NODE)
    file = folder / f"verifier.{ENDINGS[language]}"
    file.write_text(code)
    return [*RUN[language], file]


def judged(text, place):
    """True if these claims are those of an access token for this place. Nothing about the signature is known here."""
    claims = json.loads(text)
    return (claims["iss"], claims["aud"]) == (place.issuer, place.audience) and claims["exp"] > time.time() and "client_id" in claims


def verifier(language, needs, code, is_whole=True):
    """A consumer that runs a program; `code` is its text, or a function that gives it for the place."""
    def consumer(place):
        program = command(place, language, needs, code(place) if callable(code) else code)
        if program is None:
            return None
        known = {"ISSUER": place.issuer, "AUDIENCE": place.audience, "ALGORITHM": place.algorithm,
                 "SSL_CERT_FILE": place.authority.file, "NODE_EXTRA_CA_CERTS": place.authority.file,
                 "JWKS": place.issuer + "/.well-known/jwks.json", "SET": str(place.folder / "set.json"),
                 "PEM": str(place.folder / "signing-key.pem")}

        def judge(token):
            run = harness.run(program, input=token, timeout=120, env=os.environ | known)
            return not run.returncode and (is_whole or judged(run.stdout, place)), (run.stdout + run.stderr)[-300:]

        return contextlib.nullcontext(judge)

    return consumer


VERIFIERS = {name: verifier(*row) for name, row in LIBRARIES.items()} | {
    name: verifier(*row, is_whole=False) for name, row in SIGNATURES.items()}
