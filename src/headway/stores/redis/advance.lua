-- The translation of core.bill.settle (and grant): decides bills one after the other, each all or nothing.
-- KEYS: one per charge. ARGV[1]: a double, the instant (us) after which nobody waits for an answer, or 0; then two bytes per
-- bill, low one first: 4 * its charges, + 2 if a cost may be lowered, + 1 unless it is a peek. ARGV[2…]: a line per charge, see codec.py. One more ARGV, in tests only: the time instead of the server's.
-- Returns "late now" if it is too late, else "now", then per bill "1" (admitted), "0", "?" (the calendar's boundaries do not
-- reach) or "!" (a key holds what no state is; nothing was done), and each state before ("!": one that cannot be told).
local SLACK = 10000000 -- core.rule.CLOCK_SLACK_NS in microseconds
local call, unpack, byte, format, ceil, find = redis.call, struct.unpack, string.byte, string.format, math.ceil, string.find
local whole = format('%d', 4503599627370496) == '4503599627370496' and '%d' or '%.0f' -- the former is faster, where it has 64 bits
local given = tonumber(ARGV[#KEYS + 2])
local now, now_text = given, nil
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
  now_text = #time[2] == 6 and time[1] .. time[2]
end
now_text = now_text or format(whole, now)

local awaited = unpack('<d', ARGV[1])
if awaited > 0 and now > awaited then -- it lay in a queue until nobody waited any more: charge nobody
  return 'late ' .. now_text
end

local function keep(key, value, us) -- `us`: when it may be forgotten
  if not value or us <= now then
    call('DEL', key)
  elseif given then -- a test's clock: Redis must not forget by its own
    call('SET', key, value, 'PX', ceil((us - now) / 1000) + 3600000)
  else
    call('SET', key, value, 'PXAT', format(whole, ceil(us / 1000)))
  end
end

local function plain(line, s) -- core.gcra.Gcra.decide, without debt and reservations: whether it refuses ("!": no state), what to store, until when
  local cw, cf, depth_w, depth_f, d = unpack('<ddddd', line, 2)
  local w, f, changed, refuses = 0, 0, false, false
  if s then
    local other = d
    if #s == 24 then
      w, f, other = unpack('<ddd', s)
      if not (w >= 0 and w < 9007199254740992 and f >= 0 and f < other) then
        return '!'
      end
    elseif find(s, '^%d+$') then
      w = s + 0
    else
      return '!'
    end
    if other ~= d and f > 0 then -- another quota's fraction: rounded up
      w, f = w + 1, 0
    end
    w = w - now
    local most = depth_w + SLACK
    if w > most or (w == most and f > depth_f) then
      w, f, changed = depth_w, depth_f, true
    elseif w < 0 then
      w, f = 0, 0
    end
  end
  local nw, nf = w + cw, f + cf
  if nf >= d then
    nw, nf = nw + 1, nf - d
  end
  if nw < depth_w or (nw == depth_w and nf <= depth_f) then
    changed, w, f = true, nw, nf
  else
    refuses = true
  end
  if not changed then
    return refuses
  end
  w = now + w
  if f == 0 then
    return refuses, format(whole, w), w
  end
  return refuses, struct.pack('<ddd', w, f, d), w + 1
end

local function told(line, s) -- a state, as text
  if not s then
    return '-'
  elseif #s == 24 and (byte(line) == 103 or byte(line) == 71) then
    return format('%.0f:%.0f:%.0f', unpack('<ddd', s))
  end
  return find(s, ' ', 1, true) and '!' or s
end

local function read_by_plain(s) -- `told`, where `plain` has found a state
  return not s and '-' or #s == 24 and format('%.0f:%.0f:%.0f', unpack('<ddd', s)) or s
end

--@include read.lua

if #KEYS == 1 and byte(ARGV[1], 9) == 5 and byte(ARGV[2]) == 103 then -- one plain charge, to be written
  local line, s = ARGV[2], read(KEYS[1])
  if not s or #s <= 24 then
    local refuses, value, us = plain(line, s)
    if refuses == '!' then
      return now_text .. ' ! ' .. told(line, s)
    end
    if value then
      keep(KEYS[1], value, us)
    end
    return now_text .. (refuses and ' 0 ' or ' 1 ') .. read_by_plain(s)
  end
end

local reply, length = {now_text, 0, 0, 0, 0, 0}, 1
local last = 0
local texts, values, until_us, refusing -- of a bill

local function settle_plain(count) -- a bill of plain charges, to be written; false: it is another
  for i = last + 2, last + count + 1 do
    if byte(ARGV[i]) ~= 103 then
      return false
    end
  end
  if not texts then
    texts, values, until_us, refusing = {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0} -- room for most
  end
  local allowed = true
  for i = 1, count do
    local line, s = ARGV[last + i + 1], read(KEYS[last + i])
    if s and #s > 24 then
      return false
    end
    local refuses
    refuses, values[i], until_us[i] = plain(line, s)
    if refuses == '!' then
      return false
    end
    refusing[i], allowed, texts[i] = refuses, allowed and not refuses, read_by_plain(s)
  end
  length = length + 1
  reply[length] = allowed and '1' or '0'
  for i = 1, count do
    reply[length + i] = texts[i]
    if values[i] and (allowed or refusing[i]) then
      keep(KEYS[last + i], values[i], until_us[i])
    end
  end
  last, length = last + count, length + count
  return true
end

-- Each rule's `decide`: given a line, the state and what a flexible cost is lowered to (`true`: only say what fits), returns
-- whether it refuses, what to store (nil: nothing), until when, whether the limit is enforced.
local function load_settle() -- returns what decides a bill of any kind
--@include shared.lua

  local function common(cost, flags, bend) -- the cost to decide, whether enforced, whether to count refusals
    local shadow, flexible, count_refused = fmod(flags, 2) >= 1, fmod(flags, 4) >= 2, flags >= 4
    if flexible and bend and bend ~= true then
      cost = min(cost, bend)
    end
    return cost, not shadow, count_refused, bend == true and flexible and not shadow
  end

  local function gcra(line, s, bend)
    local plain = byte(line) == 103
    local cost, burst, flags, cw, cf, depth_w, depth_f, d, tw, tf, lw, le, pos = 1, 0, 0
    if plain then
      cw, cf, depth_w, depth_f, d = unpack('<ddddd', line, 2)
      lw = -1
    else
      cost, burst, flags, cw, cf, depth_w, depth_f, d, tw, tf, lw, le, pos = unpack('<dddddddddddd', line, 2)
    end
    local wanted, enforced, _, asked = common(cost, flags, bend)
    local sw, sf, dw, df, open, given_back = 0, 0, 0, 0, {}, nil
    local w, f, capped = 0, 0, false
    if s then
      sw, sf, dw, df, open, given_back = tat(s, d)
      w, f, capped = owes(sw, sf, depth_w, depth_f, dw, df, d)
    end
    local function times(k) -- k * T
      local whole, rest = share(k, tf, d)
      return k * tw + whole, rest
    end
    if bend == true then
      if not asked or after(w, f, depth_w, depth_f) then
        return asked and 0 or nil
      end
      local room_w, room_f = less(depth_w, depth_f, w, f, d)
      local fits = min(burst, ceil((room_w + room_f / d) / (tw + tf / d)) + 1) -- at most 3 too many
      for _ = 1, 4 do
        local kw, kf = times(fits)
        if fits == 0 or not after(kw, kf, room_w, room_f) then
          break
        end
        fits = fits - 1
      end
      return fits
    end
    if cost == 0 then
      return false, nil, 0, enforced
    end
    if wanted ~= cost then
      cw, cf = times(wanted)
    end
    local nw, nf = w + cw, f + cf
    if nf >= d then
      nw, nf = nw + 1, nf - d
    end
    if after(nw, nf, depth_w, depth_f) then
      if capped then
        local value, us = written(now + w, f, d, dw, df, {})
        return true, value, us, enforced
      end
      return true, nil, 0, enforced
    end
    open = unexpired(open)
    if #open > 0 then
      lowered(open[#open], w, f)
    end
    if lw >= 0 then
      local ew, ee = plus(now, 0, lw, le)
      open[#open + 1] = {token = sub(line, pos), cw = cw, cf = cf, lw = huge, lf = 0, expires = said(ew, ee)}
    end
    local value, us = written(now + nw, nf, d, 0, 0, open, given_back)
    return false, value, us, enforced
  end

  local function windowed(line, s, bend)
    local cost, burst, flags, mode, pw, pe, pos = unpack('<dddddd', line, 2)
    local wanted, enforced, count_refused, asked = common(cost, flags, bend)
    local w, e, used, capped = window(s, mode, pw, pe, line, pos)
    if not w then
      return '?'
    end
    local fits = max(0, burst - used)
    if bend == true then
      return asked and fits or nil
    end
    if cost == 0 then
      return false, nil, 0, enforced
    end
    if wanted <= fits then
      return false, format('%s:%.0f', said(w, e), used + wanted), up(w, e), enforced
    end
    if count_refused and wanted <= burst and used < burst then
      return true, format('%s:%.0f', said(w, e), burst), up(w, e), enforced
    end
    return true, capped and format('%s:%.0f', said(w, e), used) or nil, up(w, e), enforced
  end

  local function sliding(line, s, bend)
    local cost, burst, flags, pw, pe, unit, period = unpack('<ddddddd', line, 2)
    local wanted, enforced, _, asked = common(cost, flags, bend)
    local w, e, current, previous, capped = counters(s, pw, pe)
    local view = min(period, unit == 1 and w - now or (w - now) * 1000 + e)
    local gone, rest = share(previous, view, period)
    local fits = max(0, burst - gone - (rest > 0 and 1 or 0) - current)
    if bend == true then
      return asked and fits or nil
    end
    if cost == 0 then
      return false, nil, 0, enforced
    end
    if wanted <= fits then
      local value, us = counted(w, e, pw, pe, current + wanted, previous)
      return false, value, us, enforced
    end
    if capped then
      local value, us = counted(w, e, pw, pe, current, previous)
      return true, value, us, enforced
    end
    return true, nil, 0, enforced
  end

  local function log(line, s, bend)
    local cost, burst, flags, pw, pe = unpack('<ddddd', line, 2)
    local wanted, enforced, _, asked = common(cost, flags, bend)
    local live, used, capped = live_log(s, pw, pe)
    local fits = max(0, burst - used)
    if bend == true then
      return asked and fits or nil
    end
    if cost == 0 then
      return false, nil, 0, enforced
    end
    local refuses = wanted > fits
    if not refuses then
      arrive(live, wanted)
    elseif not capped then
      return true, nil, 0, enforced
    end
    local value, us = logged(live, pw, pe)
    return refuses, value, us, enforced
  end

  local function concurrent(line, s, bend)
    local cost, burst, flags, pw, pe, pos = unpack('<ddddd', line, 2)
    local wanted, enforced, _, asked = common(cost, flags, bend)
    local leases, held, capped = live_leases(s, pw, pe)
    local fits = max(0, burst - held)
    if bend == true then
      return asked and fits or nil
    end
    if cost == 0 then
      return false, nil, 0, enforced
    end
    local refuses = wanted > fits
    if not refuses then
      local w, e = plus(now, 0, pw, pe)
      leases[#leases + 1] = {w, e, sub(line, pos), wanted}
      table.sort(leases, by_expiry)
    elseif not capped then
      return true, nil, 0, enforced
    end
    local value, us = leased(leases)
    return refuses, value, us, enforced
  end

  local function growing(line, s, bend)
    local cost, burst, flags, fw, fe, lw, le, gw, ge = unpack('<ddddddddd', line, 2)
    local wanted, enforced, _, asked = common(cost, flags, bend)
    local made, w, e, capped = attempts(s, gw, ge)
    local fits
    if made < burst then
      fits = burst - made
    else -- GrowingWait.wait_after
      local beyond, ww, we = made - burst, lw, le
      if beyond <= 64 then
        local scaled = fe * 2 ^ beyond
        local rest = fmod(scaled, 1000)
        local vw, ve = fw * 2 ^ beyond + (scaled - rest) / 1000, rest
        if after(lw, le, vw, ve) then
          ww, we = vw, ve
        end
      end
      ww, we = plus(w, e, ww, we)
      fits = after(ww, we, now, 0) and 0 or 1
    end
    if bend == true then
      return asked and fits or nil
    end
    if cost == 0 then
      return false, nil, 0, enforced
    end
    local refuses = wanted > fits
    if not refuses then
      made = made + wanted
      if after(now, 0, w, e) then
        w, e = now, 0
      end
    elseif not capped then
      return true, nil, 0, enforced
    end
    local value, us = attempted(made, w, e, gw, ge)
    return refuses, value, us, enforced
  end

  local function block(line, s, bend) -- core.block
    local cost, _, flags = unpack('<ddd', line, 2)
    local _, enforced, _, asked = common(cost, flags, bend)
    if bend == true then
      return asked and 0 or nil
    end
    return cost > 0, nil, 0, enforced
  end

  local rules = {
    [103] = gcra, [71] = gcra, [119] = windowed, [115] = sliding, [108] = log, [99] = concurrent,
    [98] = block, [97] = growing,
  }
  local function weigh(first, last, states, flexible) -- core.bill.grant and .settle: the verdict, what to store, until when, who refuses
    local said, values, until_us, refusing = '1', {}, {}, {}
    local bend
    if flexible then -- core.bill.grant
      for i = first, last do
        local fits = rules[byte(ARGV[i + 1])](ARGV[i + 1], states[i], true)
        if fits == '?' then
          return '?'
        elseif fits then
          bend = min(bend or fits, fits)
        end
      end
      bend = bend and max(1, bend)
    end
    for i = first, last do
      local line, s = ARGV[i + 1], states[i]
      local refuses, value, us, enforced
      if byte(line) == 103 and (not s or #s <= 24) then
        refuses, value, us = plain(line, s)
        enforced = true
      else
        refuses, value, us, enforced = rules[byte(line)](line, s, bend)
      end
      if refuses == '?' or refuses == '!' then
        return refuses
      end
      values[i], until_us[i], refusing[i] = value, us, refuses
      if refuses and enforced then
        said = '0'
      end
    end
    return said, values, until_us, refusing
  end

  return function(low, high)
    local first = last + 1
    last = last + (low - low % 4) / 4 + high * 64
    local bill = length + 1
    reply[bill] = '!'
    length = bill + last - first + 1
    local states, foreign = {}, false
    for i = first, last do
      states[i] = read(KEYS[i])
      local text = told(ARGV[i + 1], states[i])
      reply[bill + 1 + i - first] = text
      foreign = foreign or text == '!'
    end
    if foreign then
      return
    end
    local fine, said, values, until_us, refusing = pcall(weigh, first, last, states, low % 4 >= 2)
    if not fine or said == '!' then
      return
    end
    reply[bill] = said
    if low % 2 == 1 and said ~= '?' then
      for i = first, last do
        if values[i] and (said == '1' or refusing[i]) then
          keep(KEYS[i], values[i], until_us[i])
        end
      end
    end
  end
end

local settle
for at = 9, #ARGV[1], 2 do
  local low, high = byte(ARGV[1], at, at + 1)
  if low % 4 ~= 1 or not settle_plain((low - 1) / 4 + high * 64) then
    settle = settle or load_settle()
    settle(low, high)
  end
end
return table.concat(reply, ' ', 1, length)
