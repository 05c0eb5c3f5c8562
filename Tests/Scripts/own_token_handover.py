"""The code and the settings of HandOver.md, run for own_token_test.py.

Firebase's token maker signs with a key of its own, Nakama's hook runs in Node with its `nk` played here, and moto plays AWS. PyJWT
judges the tokens that the table's settings make, by the rules that each platform documents.
"""

import json
import os
import re
import shutil

import harness
import live
from own_token_verifiers import START
from readme_command import marked

PAGE = harness.ROOT / "Sources/LLService/LLService.docc/HandOver.md"
PACKAGES = ["firebase-admin==7.1.0", "requests", "moto[cognitoidentity,iam]==5.1.10"]
ISSUER, AUDIENCE = "https://login.example.com", "https://api.example.com"
ACCOUNT = {"type": "service_account", "client_email": "maker@project.iam.gserviceaccount.com", "project_id": "project",
           "token_uri": "https://oauth2.googleapis.com/token"}
FIREBASE = """
import json, os, sys, firebase_admin, jwt, requests
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from firebase_admin import auth, credentials
token, session, key = sys.stdin.read(), {"nonce": "n-1"}, os.environ["KEY"]
account = json.loads(os.environ["ACCOUNT"])
firebase_admin.initialize_app(credentials.Certificate(account))
RECIPE
public = load_pem_private_key(account["private_key"].encode(), None).public_key()
google = "https://identitytoolkit.googleapis.com/google.identity.identitytoolkit.v1.IdentityToolkit"
claims = jwt.decode(custom_token, public, ["RS256"], audience=google, issuer=account["client_email"])
assert claims["exp"] - claims["iat"] <= 3600
print(claims["uid"])
"""
NAKAMA = """
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
RECIPE
const httpRequest = (url, method, fields, body) => {
  const named = Object.entries(fields).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
  const options = ["-s", "-w", "\\n%{http_code}", "-X", method.toUpperCase(), ...named, "-d", body, url];
  const [text, code] = execFileSync("curl", options).toString().split("\\n");
  return { code: Number(code), body: text };
};
const request = { account: { id: readFileSync(0, "utf8") } };
console.log(beforeAuthenticateCustom({ env: { key: process.env.KEY } }, {}, { httpRequest }, request).account.id);
"""
COGNITO = """
import os, sys, boto3, jwt, moto
token = sys.stdin.read()
os.environ |= {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "eu-west-1"}
with moto.mock_aws():
    iam, cognito = boto3.client("iam"), boto3.client("cognito-identity")
RECIPE
    listed = iam.get_open_id_connect_provider(OpenIDConnectProviderArn=provider["OpenIDConnectProviderArn"])
claims = jwt.decode(token, options={"verify_signature": False})
assert claims["iss"] == "https://" + listed["Url"] and [claims["aud"]] == listed["ClientIDList"] and "azp" in claims
assert jwt.get_unverified_header(token)["typ"] == "JWT" and credentials["Credentials"]["AccessKeyId"]
print(claims["sub"])
"""
JUDGED = START + """
import jwt
header = jwt.get_unverified_header(token)
claims = jwt.decode(token, jwt.PyJWKSet.from_dict(keys)[header["kid"]], [alg], audience=aud, issuer=ISSUER)
RULE
print(claims["sub"])
"""
# What a platform demands beside the signature by `kid`, the audience and the end; `there` is its cell or its block.
RULES = {
    "Hasura": ("iss", """
there = json.loads(os.environ["THERE"])
assert there["jwk_url"] == iss + "/.well-known/jwks.json" and (there["issuer"], there["audience"]) == (iss, aud)
session = {name: claims[value["path"][2:]] if "path" in value else value for name, value in there["claims_map"].items()}
assert session["x-hasura-default-role"] in session["x-hasura-allowed-roles"] and session["x-hasura-user-id"] == claims["sub"]
"""),
    "PostgREST": ("None", 'assert claims["role"] == "web_user"'),
    "Supabase": ("iss", 'assert claims["role"] == "authenticated"'),
    "AppSync": ("iss", 'import re\nassert re.fullmatch(re.search(r"`clientId: (.*?)`", os.environ["THERE"])[1], aud)'),
    "Spring": ("iss", 'assert header["typ"] == "JWT"'),
    "ASP.NET": ("iss", 'import re\nassert header["typ"] in re.findall("`(at.jwt)`", os.environ["THERE"])'),
}


def block(name, service=None):
    text = marked(f"recipe: {name}", PAGE.read_text())
    return text.replace(ISSUER, f"http://127.0.0.1:{service.port}") if service else text


def rows():
    """The platforms of the table, each with its settings and the cell of what is to be set there."""
    for name, here, there in re.findall(r"^\| ([A-Z][^|]+?) \| ?([^|]*?) \| ([^|]+) \|$", PAGE.read_text(), re.M):
        yield name, json.loads("{" + "".join(re.findall(r"`(\".*)`", here)) + "}"), there


def run(command, token, **more):
    ran = harness.run(command, input=token, timeout=120, env=os.environ | {"KEY": live.Service.key} | more)
    return ran.stdout.strip() if not ran.returncode else None, ran.stderr[-300:]


def judge(title, good, bad, program, user=live.SUBJECT, **more):
    """The good token must name the person, and each bad one must fail."""
    named, said = run(program, good, **more)
    passed = [what for what, token in bad.items() if run(program, token, **more)[0] is not None]
    harness.check(named == user and not passed, f"hand over: {title}: a good login becomes {named}, {len(bad)} others are refused "
                  + (f"but {passed} pass" if passed else "" if named == user else said))


def backends(service, issuer, python, folder, key):
    """The platforms that ask /verify."""
    if harness.run([python, "-c", "import firebase_admin, requests"]).returncode:
        harness.skip("firebase-admin is not installed")
    else:
        code = FIREBASE.replace("RECIPE", block("Firebase", service))
        account = json.dumps(ACCOUNT | {"private_key": key})
        judge("Firebase", issuer.token(), {"another nonce's": issuer.token(nonce="n-2"), "no token": "x"},
              [python, "-W", "ignore", "-c", code], ACCOUNT=account)
    if not shutil.which("node"):
        return harness.skip("node is not installed")
    file = folder.write("nakama.mjs", NAKAMA.replace("RECIPE", block("Nakama", service)))
    good = issuer.token(nonce=service.nonce())
    judge("Nakama", good, {"the same again": good, "a nonce of nobody's": issuer.token()}, ["node", file], f"facebook-{live.SUBJECT}")


def cognito(python, good):
    if harness.run([python, "-c", "import boto3, moto"]).returncode:
        return harness.skip("moto is not installed")
    recipe = "".join(f"    {line}\n" for line in block("Cognito").splitlines())
    judge("Cognito", good["id"], {"an access token": good["access"], "another audience": good["other"]},
          [python, "-W", "ignore", "-c", COGNITO.replace("RECIPE", recipe)])


def platforms(program, issuer, python, key, exchange, folder):
    """Runs each block and each row; `exchange` sends one request to /token."""
    file, id_token = folder.write("keys.pem", key), "urn:ietf:params:oauth:token-type:id_token"
    for name, settings, there in [("", {}, ""), *rows()]:
        own = {"issuer": ISSUER, "signing_keys_file": file, "token_audiences": f"{AUDIENCE},elsewhere"}
        own |= {setting: value if isinstance(value, str) else json.dumps(value) for setting, value in settings.items()}
        with live.Service(program, issuer.jwks_url, **own) as service:
            service.wait_until_ready()
            token = issuer.token()
            if not name:
                backends(service, issuer, python, folder, key)
                continue
            good = {what: exchange(service, token, **form)[1]["access_token"] for what, form in [
                ("access", {}), ("other", {"audience": "elsewhere"}), ("id", {"requested_token_type": id_token})]}
            if name.startswith("Cognito"):
                cognito(python, good)
                continue
            issuer_rule, rule = RULES[name]
            code = JUDGED.replace("ISSUER)", f"{issuer_rule})").replace("RULE", rule)
            known = {"ISSUER": ISSUER, "AUDIENCE": AUDIENCE, "ALGORITHM": "RS256", "THERE": block(name) if name == "Hasura" else there,
                     "JWKS": f"http://127.0.0.1:{service.port}/.well-known/jwks.json"}
            judge(name, good["access"], {"another audience": good["other"], "Facebook's own": token},
                  [python, "-W", "ignore", "-c", code], **known)
