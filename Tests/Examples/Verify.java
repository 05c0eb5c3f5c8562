// VERIFY_URL=http://127.0.0.1:8080 VERIFY_KEY=... java Verify.java TOKEN nonce NONCE   (Java 17; the nonce comes from your session)
// Exit code 0 accepted, 1 refused, 3 no verdict now (keep the session and try again), 64 wrong call.
import java.net.URI;
import java.net.http.*;
import java.time.Duration;
import java.util.regex.Pattern;

class Verify {
    /** The answer of the service: any JSON library reads it better than `member`. */
    static HttpResponse<String> verify(String token, String member, String value) throws Exception {
        var body = "{" + quoted(token.startsWith("eyJ") ? "id_token" : "access_token") + ":" + quoted(token)
            + (member == null ? "" : "," + quoted(member) + ":" + quoted(value)) + "}";
        var question = HttpRequest.newBuilder(URI.create(System.getenv("VERIFY_URL") + "/verify"))
            .timeout(Duration.ofSeconds(10))
            .headers("Content-Type", "application/json", "X-Api-Key", System.getenv("VERIFY_KEY"))
            .POST(HttpRequest.BodyPublishers.ofString(body)).build();
        return HttpClient.newHttpClient().send(question, HttpResponse.BodyHandlers.ofString());
    }

    static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }

    static String member(String json, String name) {
        var found = Pattern.compile('"' + name + "\":\"([^\"]*)\"").matcher(json);
        return found.find() ? found.group(1) : "";
    }

    static void exit(int code, String message) {
        (code == 0 ? System.out : System.err).println(message);
        System.exit(code);
    }

    public static void main(String[] given) throws Exception {
        if (given.length != 1 && given.length != 3) exit(64, "usage: Verify TOKEN [nonce NONCE | subject USER]");
        try {
            var answer = given.length == 1 ? verify(given[0], null, null) : verify(given[0], given[1], given[2]);
            var code = member(answer.body(), "code");
            if (answer.statusCode() == 200) exit(0, member(answer.body(), "user_id") + " " + member(answer.body(), "name"));
            // This server's own key is missing or wrong: an outage, not a refusal.
            if (code.equals("unauthorized_client")) exit(3, "set VERIFY_KEY to a key that the service knows");
            exit(answer.statusCode() == 401 ? 1 : 3, code + ": " + member(answer.body(), "detail"));
        } catch (java.io.IOException error) {
            exit(3, "no verdict: " + error);
        }
    }
}
