-- The translation of core.change.Change.applied: groups of changes one after the other, each group in one step.
-- KEYS: one per change. ARGV[1]: two bytes per group, low one first: its changes. ARGV[2…]: a line per change, see codec.py.
-- One more ARGV, in tests only: the time instead of the server's. Returns "now", then per group a digit per change (1: in
-- time), or "?" (the calendar's boundaries do not reach; nothing of the group was done).
local SLACK = 10000000 -- core.rule.CLOCK_SLACK_NS in microseconds
local call, unpack, byte = redis.call, struct.unpack, string.byte
local given = tonumber(ARGV[#KEYS + 2])
local now = given
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
--@include shared.lua

local function keep(key, value, us)
  if not value or us <= now then
    call('DEL', key)
  elseif given then
    call('SET', key, value, 'PX', ceil((us - now) / 1000) + 3600000)
  else
    call('SET', key, value, 'PXAT', ceil(us / 1000))
  end
end

-- Each rule's `give_back`, `take` and `renew`: whether in time, whether there is something to store, what, until when.

local function gcra(line, s, units, take)
  local d, depth_w, depth_f, bw, bf, full_w, full_f, end_w, end_f, tw, tf, most_w, most_f, pos =
    unpack('<ddddddddddddd', line, 42)
  local token = sub(line, pos)
  local held = token ~= '0'
  local w, f, dw, df, open = 0, 0, 0, 0, {}
  if s then
    local sw, sf
    sw, sf, dw, df, open = tat(s, d)
    w, f = owes(sw, sf, depth_w, depth_f, dw, df, d)
    open = unexpired(open)
  end
  local changed = false
  if s and held then -- core.reserved.give_back
    local index
    for i, one in ipairs(open) do
      index = index or (one.token == token and i)
    end
    if index then
      local mine = open[index]
      if mine.cw ~= full_w or mine.cf ~= full_f then -- written under another quota
        if after(bw, bf, mine.cw, mine.cf) then
          bw, bf = mine.cw, mine.cf
        end
      end
      local back_w, back_f = bw, bf
      for i = index, #open do
        local one = open[i]
        if after(back_w, back_f, one.lw, one.lf) then
          back_w, back_f = one.lw, one.lf
        end
        one.lw, one.lf = less(one.lw, one.lf, bw, bf, d)
        if one.lw < 0 then
          one.lw, one.lf = 0, 0
        end
      end
      if index > 1 then
        lowered(open[index - 1], mine.lw, mine.lf)
      end
      table.remove(open, index)
      bw, bf, changed = back_w, back_f, true
    end
  elseif s and units > 0 then
    local unpaid_w, unpaid_f = less(end_w, end_f, now, 0, d)
    if after(unpaid_w, unpaid_f, full_w, full_f) then
      unpaid_w, unpaid_f = full_w, full_f
    elseif unpaid_w < 0 then
      unpaid_w, unpaid_f = 0, 0
    end
    for _, one in ipairs(open) do
      one.lw, one.lf = less(one.lw, one.lf, bw, bf, d)
      if one.lw < 0 then
        one.lw, one.lf = 0, 0
      end
    end
    if after(bw, bf, unpaid_w, unpaid_f) then
      bw, bf = unpaid_w, unpaid_f
    end
    changed = true
  end
  if held and not changed then
    return false
  end
  if changed then
    if after(bw, bf, w, f) then
      bw, bf = w, f
    end
    w, f = less(w, f, bw, bf, d)
    local over_w, over_f = less(w, f, depth_w, depth_f, d)
    if over_w < 0 then
      over_w, over_f = 0, 0
    end
    if after(dw, df, over_w, over_f) then
      dw, df = over_w, over_f
    end
  end
  if take > 0 then
    if #open > 0 then
      lowered(open[#open], w, f)
    end
    w, f = w + tw, f + tf
    if f >= d then
      w, f = w + 1, f - d
    end
    if after(w, f, most_w, most_f) then
      w, f = most_w, most_f
    end
    dw, df = less(w, f, depth_w, depth_f, d)
    if dw < 0 then
      dw, df = 0, 0
    end
    changed = true
  end
  if not changed then
    return true, false
  end
  local value, us = written(now + w, f, d, dw, df, open)
  return true, true, value, us
end

local function windowed(line, s, units, take)
  local mode, pw, pe, end_w, end_e, pos = unpack('<ddddd', line, 42)
  local changed = false
  if s and units > 0 then
    local found = fields(s)
    local w, e = instant(found[1])
    if after(w, e, now, 0) and w == end_w and e == end_e then
      s = format('%s:%.0f', found[1], max(0, tonumber(found[2]) - units))
      changed = true
    end
  end
  if take > 0 then
    local w, e, used = window(s, mode, pw, pe, line, pos)
    if not w then
      return '?'
    end
    s = format('%s:%.0f', said(w, e), used + take)
    changed = true
  end
  if not changed then
    return true, false
  end
  return true, true, s, up(instant(fields(s)[1]))
end

local function sliding(line, s, units, take)
  local pw, pe, end_w, end_e = unpack('<dddd', line, 42)
  if not s and take == 0 then
    return true, false
  end
  local w, e, current, previous = counters(s, pw, pe)
  local changed = take > 0
  if s then
    local before_w, before_e = less(w, e, pw, pe, 1000)
    if not after(w, e, end_w, end_e) then
      current, changed = max(0, current - units), true
    elseif before_w == end_w and before_e == end_e then
      previous, changed = max(0, previous - units), true
    end
  end
  if not changed then
    return true, false
  end
  local value, us = counted(w, e, pw, pe, current + take, previous)
  return true, true, value, us
end

local function log(line, s, units, take)
  local pw, pe, at_w, at_e = unpack('<dddd', line, 42)
  local live = live_log(s, pw, pe)
  local changed = take > 0
  for i, one in ipairs(live) do
    if one[1] == at_w and one[2] == at_e then
      one[3], changed = one[3] - units, true
      if one[3] <= 0 then
        table.remove(live, i)
      end
      break
    end
  end
  if not changed then
    return true, false
  end
  if take > 0 then
    arrive(live, take)
  end
  local value, us = logged(live, pw, pe)
  return true, true, value, us
end

local function concurrent(line, s, units, take, renew)
  local pw, pe, end_w, end_e, pos = unpack('<dddd', line, 42)
  local token = sub(line, pos)
  local leases = live_leases(s, pw, pe)
  local changed = false
  for i, one in ipairs(leases) do
    if one[3] == token and (token ~= '0' or (not renew and one[1] == end_w and one[2] == end_e)) then
      if renew then
        one[1], one[2] = plus(now, 0, pw, pe)
      elseif units < one[4] then
        one[4] = one[4] - units
      else
        table.remove(leases, i)
      end
      changed = true
      break
    end
  end
  if not changed then
    return false
  end
  table.sort(leases, by_expiry)
  local value, us = leased(leases)
  return true, true, value, us
end

local function growing(line, s, units, take)
  local gw, ge, at_w, at_e = unpack('<dddd', line, 42)
  local made, w, e = attempts(s, gw, ge)
  local changed = take > 0
  if made > 0 and not after(at_w, at_e, w, e) then
    made, changed = max(0, made - units), true
  end
  if not changed then
    return true, false
  end
  if take > 0 then
    if made == 0 or after(now, 0, w, e) then
      w, e = now, 0
    end
    made = made + take
  end
  if made == 0 then
    return true, true, nil, 0
  end
  local value, us = attempted(made, w, e, gw, ge)
  return true, true, value, us
end

local function block()
  return true, false
end

local rules = {
  [103] = gcra, [119] = windowed, [115] = sliding, [108] = log, [99] = concurrent, [98] = block, [97] = growing,
}

local function applied(line, s)
  local late_w, late_e, units, take, renew = unpack('<ddddd', line, 2)
  local kind = byte(line)
  if kind ~= 99 then
    if renew == 1 then
      return true, false
    end
    if late_w >= 0 and not after(late_w, late_e, now, 0) then
      return false
    end
  end
  return rules[kind](line, s, units, take, renew == 1)
end

local reply = {format('%.0f', now)}
local last = 0
for at = 1, #ARGV[1], 2 do
  local low, high = byte(ARGV[1], at, at + 1)
  local first = last + 1
  last = last + low + high * 256
  local said_of, writes = '', {}
  for i = first, last do
    local in_time, changed, value, us = applied(ARGV[i + 1], call('GET', KEYS[i]))
    if in_time == '?' then
      said_of = '?'
      break
    end
    said_of = said_of .. (in_time and '1' or '0')
    if changed then
      writes[#writes + 1] = {KEYS[i], value, us}
    end
  end
  if said_of ~= '?' then
    for _, one in ipairs(writes) do
      keep(one[1], one[2], one[3])
    end
  end
  reply[#reply + 1] = said_of
end
return table.concat(reply, ' ')
