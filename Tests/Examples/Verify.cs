// VERIFY_URL=http://127.0.0.1:8080 VERIFY_KEY=... dotnet run Verify.cs TOKEN nonce NONCE  (.NET 10; the nonce comes from your session)
// Exit code 0 accepted, 1 refused, 3 no verdict now (keep the session and try again), 64 wrong call.
using System.Text.Json.Nodes;

if (args.Length is not (1 or 3))
{
    Console.Error.WriteLine("usage: Verify TOKEN [nonce NONCE | subject USER]");
    return 64;
}
using var client = new HttpClient { Timeout = TimeSpan.FromSeconds(10) };
client.DefaultRequestHeaders.Add("X-Api-Key", Environment.GetEnvironmentVariable("VERIFY_KEY"));
var members = new JsonObject { [args[0].StartsWith("eyJ") ? "id_token" : "access_token"] = args[0] };
if (args.Length == 3) members[args[1]] = args[2];
try
{
    var body = new StringContent(members.ToJsonString(), null, "application/json");
    using var answer = await client.PostAsync(Environment.GetEnvironmentVariable("VERIFY_URL") + "/verify", body);
    var told = JsonNode.Parse(await answer.Content.ReadAsStringAsync())!;
    if (answer.IsSuccessStatusCode)
    {
        Console.WriteLine($"{told["profile"]!["user_id"]} {told["profile"]!["name"]}");
        return 0;
    }
    // This server's own key is missing or wrong: an outage, not a refusal.
    var isKey = (string?)told["code"] == "unauthorized_client";
    Console.Error.WriteLine(isKey ? "set VERIFY_KEY to a key that the service knows" : $"{told["code"]}: {told["detail"]}");
    return (int)answer.StatusCode == 401 && !isKey ? 1 : 3;
}
catch (Exception error) when (error is HttpRequestException or TaskCanceledException or System.Text.Json.JsonException)
{
    Console.Error.WriteLine($"no verdict: {error.Message}");
    return 3;
}
