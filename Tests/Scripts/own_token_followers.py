"""Consumers that keep the key set while a new key is put second, then first, then alone, for own_token_test.py.

go-oidc obeys `max-age`: it reads the set 30 s before that is over, and no earlier. `jose` and PyJWT read it at once for a key ID that
they do not know, `jose` at most every 30 s. Here a front serves the set with a shorter `max-age`; `--whole` takes the service's 300 s.
"""

import os
import time

import harness
import live
from own_token_verifiers import GO, NODE, compiled

ISSUER, AUDIENCE, MAX_AGE = "https://login.example.com", "https://api.example.com", 300
FOLLOWERS = {
    "go-oidc": """
config := oidc.Config{ClientID: os.Getenv("AUDIENCE")}
verifier := oidc.NewVerifier(os.Getenv("ISSUER"), oidc.NewRemoteKeySet(context.Background(), os.Getenv("JWKS")), &config)
lines := bufio.NewScanner(os.Stdin)
for lines.Scan() {
    _, err := verifier.Verify(context.Background(), lines.Text())
    if err != nil { fmt.Println(err) } else { fmt.Println("ok") }
}
""",
    "PyJWT": """
import jwt, os, sys
keys = jwt.PyJWKClient(os.environ["JWKS"], lifespan=int(os.environ["MAX_AGE"]))
for token in sys.stdin:
    try:
        key = keys.get_signing_key_from_jwt(token.strip())
        jwt.decode(token.strip(), key, ["RS256"], issuer=os.environ["ISSUER"], audience=os.environ["AUDIENCE"])
        print("ok", flush=True)
    except jwt.PyJWTError as error:
        print(error, flush=True)
""",
    "jose": """
import { createInterface } from "node:readline";
import { createRemoteJWKSet, jwtVerify } from "jose";
const { JWKS, MAX_AGE, ISSUER: issuer, AUDIENCE: audience } = process.env;
const keys = createRemoteJWKSet(new URL(JWKS), { cooldownDuration: Number(MAX_AGE) * 100, cacheMaxAge: Number(MAX_AGE) * 2000 });
for await (const token of createInterface({ input: process.stdin })) {
  console.log(await jwtVerify(token, keys, { issuer, audience }).then(() => "ok", (error) => error.message));
}
""",
    # The service itself.
    "/auth": """
while read -r token; do
  code=$(curl -s -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $token" "$AUTH")
  [ "$code" = 200 ] && echo ok || echo "$code"
done
""",
}


class Follower(live.Asked):
    """A consumer that runs on, with the answers that it gave to tokens."""

    def __init__(self, name, *rest):
        self.name, self.answers = name, []
        super().__init__(*rest)

    def judge(self, token):
        self.answers.append(self.ask(token))

    def refused(self):
        return [answer for answer in self.answers if answer != "ok"]


def followers(python, folder, auth, url, max_age):
    """The consumers that are installed."""
    environment = {"AUTH": auth, "JWKS": url, "MAX_AGE": str(max_age), "ISSUER": ISSUER, "AUDIENCE": AUDIENCE}
    commands = {"/auth": ["bash", "-c", FOLLOWERS["/auth"]]}
    if not harness.run([python, "-c", "import jwt"]).returncode:
        commands["PyJWT"] = [python, "-c", FOLLOWERS["PyJWT"]]
    if os.path.exists(GO + "github.com/coreos/go-oidc") and harness.program_path("go"):
        commands["go-oidc"] = [compiled(folder.path, GO + "github.com/coreos/go-oidc", FOLLOWERS["go-oidc"], stdin=False)]
    if os.path.exists(NODE + "/jose") and harness.program_path("node"):
        (folder.path / "node_modules").symlink_to(NODE)
        commands["jose"] = ["node", folder.write("follower.mjs", FOLLOWERS["jose"])]
    for name in FOLLOWERS.keys() - commands.keys():
        harness.skip(f"{name} is not installed")
    return [Follower(name, command, environment) for name, command in commands.items()]


def change(program, issuer, python, key, exchange, max_age, waits):
    """Changes the key, with or without the wait between its publication and its use; returns the followers."""
    with harness.Folder() as folder:
        old, new = key(program), key(program)
        own = {"issuer": ISSUER, "signing_keys_file": folder.write("keys.pem", old), "token_audiences": AUDIENCE}
        with live.Service(program, issuer.jwks_url, **own) as service:
            service.wait_until_ready()
            direct = f"http://127.0.0.1:{service.port}/.well-known/jwks.json"
            front = harness.serve(lambda request: (*harness.request(service.port, "GET", request.path),
                                                   {"Cache-Control": f"max-age={max_age}"}))
            url = direct if max_age == MAX_AGE else front.url + "/.well-known/jwks.json"
            running = followers(python, folder, f"http://127.0.0.1:{service.port}/auth", url, max_age)
            kept = exchange(service, issuer.token())[1]["access_token"]

            def judged_for(seconds):
                end = time.monotonic() + seconds
                while True:
                    token = exchange(service, issuer.token())[1]["access_token"]
                    for follower in running:
                        follower.judge(token)
                    if time.monotonic() > end:
                        return
                    time.sleep(max_age / 100)

            judged_for(0)
            for count, (text, pause) in enumerate([(old + new, max_age if waits else 0), (new + old, 5), (new, 0)], 1):
                folder.write("keys.pem", text)
                service.hang_up()
                if not service.wait_for('"configuration reloaded"', count):
                    raise RuntimeError("no reload:\n" + service.output())
                judged_for(pause)
            front.shutdown()
            for follower in running:
                follower.process.kill()
            status = harness.request(service.port, "GET", "/auth", fields={"Authorization": f"Bearer {kept}"})[0]
            harness.check(status == 401, f"a token of the key that is gone is refused ({status})")
            return running


def rotations(program, issuer, python, key, exchange, is_whole):
    max_age = MAX_AGE if is_whole else 45
    for follower in change(program, issuer, python, key, exchange, max_age, True):
        refused = follower.refused()
        harness.check(not refused, f"{follower.name}: a key that is used {max_age} s after it was published: {len(refused)} of "
                      f"{len(follower.answers)} tokens refused" + "".join(f"; {one}" for one in refused[:1]))
    for follower in change(program, issuer, python, key, exchange, max_age, False):
        if follower.name == "go-oidc":
            harness.check(follower.refused(), f"go-oidc: one that is used at once: {len(follower.refused())} of "
                          f"{len(follower.answers)} tokens refused, so the wait is needed")
