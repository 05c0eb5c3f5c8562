-- Asks limited-login about a request's bearer token:
--   http-request lua.limited-login http://127.0.0.1:8080/auth
-- and keeps the answer in the variables txn.auth_status (0 where there was none), txn.auth_challenge, txn.auth_retry,
-- txn.auth_subject, txn.auth_audience, txn.auth_expires and txn.auth_email.

local exported = { "subject", "audience", "expires", "email" }

local function first(headers, name)
    return headers and headers[name] and headers[name][0]
end

core.register_action("limited-login", { "http-req" }, function(txn, url)
    local headers = { ["x-request-id"] = {}, ["authorization"] = {} }
    local received = txn.http:req_get_headers()
    for name, values in pairs(headers) do
        -- Every field is passed on: that there are two is for the service to refuse.
        for index = 0, 8 do
            local value = received[name] and received[name][index]
            if value then values[#values + 1] = value end
        end
        if #values == 0 then headers[name] = nil end
    end

    local answer = core.httpclient():get({ url = url, headers = headers, timeout = 5000 })
    txn:set_var("txn.auth_status", answer and answer.status or 0)
    txn:set_var("txn.auth_retry", first(answer and answer.headers, "retry-after") or "1")
    txn:set_var("txn.auth_challenge", first(answer and answer.headers, "www-authenticate") or "Bearer")
    for _, name in ipairs(exported) do
        local value = first(answer and answer.headers, "x-auth-" .. name)
        if value then txn:set_var("txn.auth_" .. name, value) end
    end
end, 1)
