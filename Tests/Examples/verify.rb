# VERIFY_URL=http://127.0.0.1:8080 VERIFY_KEY=... ruby verify.rb TOKEN nonce NONCE     (the nonce comes from your session)
# Exit code 0 accepted, 1 refused, 3 no verdict now (keep the session and try again), 64 wrong call.
require "json"
require "net/http"

def verify(token, binding = {})
  members = { (token.start_with?("eyJ") ? "id_token" : "access_token") => token }.merge(binding)
  url = URI("#{ENV.fetch("VERIFY_URL", "http://127.0.0.1:8080")}/verify")
  fields = { "Content-Type" => "application/json", "X-Api-Key" => ENV["VERIFY_KEY"].to_s }
  answer = Net::HTTP.start(url.host, url.port, use_ssl: url.scheme == "https", open_timeout: 10, read_timeout: 10) do |http|
    http.post(url.path, members.to_json, fields)
  end
  [answer.code.to_i, JSON.parse(answer.body)]
end

unless [1, 3].include?(ARGV.size)
  warn "usage: verify.rb TOKEN [nonce NONCE | subject USER]"
  exit 64
end
begin
  status, answer = verify(ARGV[0], ARGV.size == 3 ? { ARGV[1] => ARGV[2] } : {})
rescue SystemCallError, Timeout::Error, SocketError, EOFError, JSON::ParserError => error
  warn "no verdict: #{error.message}"
  exit 3
end
if status == 200
  puts "#{answer["profile"]["user_id"]} #{answer["profile"]["name"]}"
  exit 0
end
# This server's own key is missing or wrong: an outage, not a refusal.
key = answer["code"] == "unauthorized_client"
warn key ? "set VERIFY_KEY to a key that the service knows" : "#{answer["code"]}: #{answer["detail"]}"
exit status == 401 && !key ? 1 : 3
