-- Asks limited-login about a request's bearer token, for Apache's mod_lua.

local http = require "socket.http"

-- Add what the token must show: /auth?permissions=email
local url = "http://127.0.0.1:8080/auth"
local exported = { "X-Auth-Subject", "X-Auth-Audience", "X-Auth-Expires", "X-Auth-Email" }

http.TIMEOUT = 5

function check(r)
    local _, status, headers = http.request({
        url = url,
        method = "GET",
        headers = { ["authorization"] = r.headers_in["Authorization"] },
        redirect = false,
        sink = function() return 1 end,
    })
    if status == 200 then
        for _, name in ipairs(exported) do
            local value = headers[name:lower()]
            if value then r.headers_in[name] = value end
        end
        return apache2.DECLINED
    end
    if status == 401 or status == 403 then
        r.err_headers_out["WWW-Authenticate"] = headers["www-authenticate"]
        return status
    end
    -- Whatever else is not a yes is an outage.
    r.err_headers_out["Retry-After"] = type(headers) == "table" and headers["retry-after"] or "1"
    return 503
end
