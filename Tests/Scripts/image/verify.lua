-- wrk script: posts one request body (the file given) over and over and counts the answers by kind.
local threads = {}

function setup(thread) table.insert(threads, thread) end

function init(arguments)
   wrk.method = "POST"
   wrk.headers["Content-Type"] = "application/json"
   wrk.body = assert(io.open(arguments[1])):read("*a")
   good, busy, wrong = 0, 0, 0
end

function response(status)
   if status == 200 then good = good + 1 elseif status == 503 then busy = busy + 1 else wrong = wrong + 1 end
end

function done()
   local sums = { good = 0, busy = 0, wrong = 0 }
   for _, thread in ipairs(threads) do
      for kind, sum in pairs(sums) do sums[kind] = sum + thread:get(kind) end
   end
   io.write(string.format("answers: %d %d %d\n", sums.good, sums.busy, sums.wrong))
end
