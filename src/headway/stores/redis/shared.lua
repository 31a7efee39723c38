-- Everything but plain GCRA, for advance.lua and change.lua. Numbers are doubles: each stays a whole number below 2^53. Every
-- loop is bounded: over what is stored, or by a number that stands there.
-- An instant is a pair: whole microseconds since 1970 and 0 to 999 nanoseconds (`w`, `e`), stored as one decimal number of
-- nanoseconds. GCRA counts in microseconds and 1/d microseconds (`w`, `f`), where T is a whole number of 1/d microseconds.
local floor, ceil, fmod, max, min, huge = math.floor, math.ceil, math.fmod, math.max, math.min, math.huge
local sub, format, gmatch = string.sub, string.format, string.gmatch
local pack = struct.pack

local function instant(text) -- raises an error where it is none
  return tonumber(sub(text, 1, -4)) or 0, tonumber(sub(text, -3)) + 0
end

local function said(w, e)
  return format('%.0f%03.0f', w, e)
end

local function plus(w, e, pw, pe)
  e = e + pe
  if e >= 1000 then
    return w + pw + 1, e - 1000
  end
  return w + pw, e
end

local function after(w, e, v, f) -- w:e > v:f
  return w > v or (w == v and e > f)
end

local function up(w, e) -- whole microseconds, rounded up
  return e > 0 and w + 1 or w
end

local function fields(text, before, every) -- so many, and any number of groups of `every`; raises an error where they are not that
  assert(string.find(text, '^%d[%dg:-]*$'))
  local found = {}
  for field in gmatch(text, '[^:]+') do
    found[#found + 1] = field
  end
  assert(#found == before or (every and #found > before and fmod(#found - before, every) == 0))
  return found
end

local function share(a, b, c) -- floor(a * b / c) and the rest, for b <= c < 2^53
  local product = a * b
  if product < 9007199254740992 then
    local rest = fmod(product, c)
    return (product - rest) / c, rest
  end
  local bit = 9007199254740992
  local whole, rest = 0, 0
  for _ = 0, 53 do
    whole = whole * 2
    if rest >= c - rest then
      rest, whole = rest - (c - rest), whole + 1
    else
      rest = rest + rest
    end
    if a >= bit then
      a = a - bit
      if rest >= c - b then
        rest, whole = rest - (c - b), whole + 1
      else
        rest = rest + b
      end
    end
    bit = bit / 2
  end
  return whole, rest
end

--@include gcra.lua

-- core.fixed_window and core.calendar_window: "end:used".

local function aligned(at, pw, pe) -- the first multiple of the period after `at`
  if pe == 0 then
    return at - fmod(at, pw) + pw, 0
  end
  local p = pw * 1000 + pe
  if p < 9e14 then
    local past = fmod(at, p)
    for _ = 1, 3 do
      past = fmod(past * 10, p)
    end
    local rest = fmod(p - past, 1000)
    return at + (p - past - rest) / 1000, rest
  end
  local k = max(0, floor(at / (pw + pe / 1000)) - 1)
  for _ = 1, 4 do
    local rest = fmod(k * pe, 1000)
    local w = k * pw + (k * pe - rest) / 1000
    if after(w, rest, at, 0) then
      return w, rest
    end
    k = k + 1
  end
end

local function window_end(at, mode, pw, pe, line, pos) -- nil: none of the boundaries in the line fits
  if mode == 0 then
    return aligned(at, pw, pe)
  elseif mode == 1 then
    return plus(at, 0, pw, pe)
  end
  local before, next_one = struct.unpack('<d', line, pos)
  if at < before then
    return nil
  end
  for i = pos + 8, #line, 8 do
    next_one = struct.unpack('<d', line, i)
    if at < next_one then
      return next_one, 0
    end
  end
  return nil
end

local function window(s, mode, pw, pe, line, pos) -- Windowed._open: end w, end e, used, capped; nil: no boundary fits
  local w, e = window_end(now, mode, pw, pe, line, pos)
  local v, f = window_end(now + SLACK, mode, pw, pe, line, pos)
  if not w or not v then
    return nil
  end
  if not s then
    return w, e, 0, false
  end
  local found = fields(s, 2)
  local sw, se = instant(found[1])
  if not after(sw, se, now, 0) then
    return w, e, 0, false
  end
  local used = tonumber(found[2])
  if after(sw, se, w, e) and after(sw, se, v, f) then
    return w, e, used, true
  end
  if mode ~= 1 and after(w, e, sw, se) then
    return w, e, used, false
  end
  return sw, se, used, false
end

-- core.sliding_window: "end:period:current:previous", the period in nanoseconds.

local function counters(s, pw, pe) -- SlidingWindow._seen: end w, end e, current, previous, capped
  local w, e = aligned(now, pw, pe)
  if not s then
    return w, e, 0, 0, false
  end
  local found = fields(s, 4)
  local sw, se = instant(found[1])
  local qw, qe = instant(found[2])
  local lw, le = plus(sw, se, qw, qe)
  if not after(lw, le, now, 0) then
    return w, e, 0, 0, false
  end
  local current, previous = tonumber(found[3]), tonumber(found[4])
  local vw, ve = aligned(now + SLACK, pw, pe)
  if after(sw, se, vw, ve) then
    return w, e, current + previous, 0, true
  end
  local ahead = after(sw, se, now, 0)
  if qw ~= pw or qe ~= pe then -- SlidingWindow._adopted
    if ahead then
      return w, e, current + previous, 0, after(sw, se, w, e)
    end
    local nw, ne = plus(sw, se, pw, pe)
    if after(nw, ne, w, e) then
      return w, e, current, 0, false
    end
    nw, ne = plus(nw, ne, pw, pe)
    return w, e, 0, after(nw, ne, w, e) and current or 0, false
  end
  if ahead then
    return sw, se, current, previous, false
  end
  return w, e, 0, current, false
end

local function counted(w, e, pw, pe, current, previous)
  local lw, le = plus(w, e, pw, pe)
  return format('%s:%s:%.0f:%.0f', said(w, e), said(pw, pe), current, previous), up(lw, le)
end

-- core.sliding_log: "instant:units:…", oldest first; the log is a list of {w, e, units}.

local function live_log(s, pw, pe) -- SlidingLog._live, units in all, capped
  local found = s and fields(s, 0, 2) or {}
  local log, used, capped = {}, 0, false
  for i = 1, #found, 2 do
    local w, e = instant(found[i])
    local gone_w, gone_e = plus(w, e, pw, pe)
    if after(gone_w, gone_e, now, 0) then
      local units = tonumber(found[i + 1])
      log[#log + 1] = {w, e, units}
      used = used + units
    end
  end
  if #log > 0 and after(log[#log][1], log[#log][2], now + SLACK, 0) then
    capped = true
    local honest, here = {}, 0
    for _, one in ipairs(log) do
      if after(one[1], one[2], now + SLACK, 0) or (one[1] == now and one[2] == 0) then
        here = here + one[3]
      else
        honest[#honest + 1] = one
      end
    end
    honest[#honest + 1] = {now, 0, here}
    table.sort(honest, function(a, b) return after(b[1], b[2], a[1], a[2]) end)
    log = honest
  end
  return log, used, capped
end

local function logged(log, pw, pe)
  if #log == 0 then
    return nil, 0
  end
  local parts = {}
  for i, one in ipairs(log) do
    parts[i] = format('%s:%.0f', said(one[1], one[2]), one[3])
  end
  local last = log[#log]
  return table.concat(parts, ':'), up(plus(last[1], last[2], pw, pe))
end

local function arrive(log, units) -- core.sliding_log._with
  local last = log[#log]
  if last and not after(now, 0, last[1], last[2]) then
    last[3] = last[3] + units
  else
    log[#log + 1] = {now, 0, units}
  end
end

-- core.concurrency: "expires:token:units:…", in the order of expiry; a lease is {w, e, token, units}.

local function by_expiry(a, b)
  if a[1] ~= b[1] or a[2] ~= b[2] then
    return after(b[1], b[2], a[1], a[2])
  end
  if a[3] ~= b[3] then
    return #a[3] < #b[3] or (#a[3] == #b[3] and a[3] < b[3])
  end
  return a[4] < b[4]
end

local function live_leases(s, pw, pe) -- Concurrency._live (without a period: _held), units held, capped
  local found = s and fields(s, 0, 3) or {}
  local leases, held = {}, 0
  for i = 1, #found, 3 do
    local w, e = instant(found[i])
    if after(w, e, now, 0) then
      leases[#leases + 1] = {w, e, found[i + 1], tonumber(found[i + 2])}
      held = held + leases[#leases][4]
    end
  end
  local vw, ve = huge, 0
  if pw then
    vw, ve = plus(now + SLACK, 0, pw, pe)
  end
  local last = leases[#leases]
  if not last or not after(last[1], last[2], vw, ve) then
    return leases, held, false
  end
  for _, one in ipairs(leases) do
    if after(one[1], one[2], vw, ve) then
      one[1], one[2] = plus(now, 0, pw, pe)
    end
  end
  table.sort(leases, by_expiry)
  return leases, held, true
end

local function leased(leases)
  if #leases == 0 then
    return nil, 0
  end
  local parts = {}
  for i, one in ipairs(leases) do
    parts[i] = format('%s:%s:%.0f', said(one[1], one[2]), one[3], one[4])
  end
  local last = leases[#leases]
  return table.concat(parts, ':'), up(last[1], last[2])
end

-- core.growing_wait: "made:latest".

local function attempts(s, forgiven_w, forgiven_e) -- GrowingWait._seen: made, latest w, latest e, capped
  if not s then
    return 0, now, 0, false
  end
  local found = fields(s, 2)
  local w, e = instant(found[2])
  local gone_w, gone_e = plus(w, e, forgiven_w, forgiven_e)
  if not after(gone_w, gone_e, now, 0) then
    return 0, now, 0, false
  end
  if after(w, e, now + SLACK, 0) then
    return tonumber(found[1]), now, 0, true
  end
  return tonumber(found[1]), w, e, false
end

local function attempted(made, w, e, forgiven_w, forgiven_e)
  return format('%.0f:%s', made, said(w, e)), up(plus(w, e, forgiven_w, forgiven_e))
end
