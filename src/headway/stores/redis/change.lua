-- The translation of core.change.Change.applied: groups of changes one after the other, each group in one step.
-- KEYS: one per change. ARGV[1]: a double as in advance.lua; then two bytes per group, low one first: its changes. ARGV[2…]: a line per change, see codec.py.
-- One more ARGV, in tests only: the time instead of the server's. Returns "late now" or "now", then per group a digit per change (1: in
-- time), or, where nothing of the group was done, "?" (the calendar's boundaries do not reach) or "!" and which change (its
-- key holds what no state is).
local SLACK = 10000000 -- core.rule.CLOCK_SLACK_NS in microseconds
local call, unpack, byte = redis.call, struct.unpack, string.byte
local given = tonumber(ARGV[#KEYS + 2])
local now = given
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
--@include read.lua
--@include shared.lua

local awaited = unpack('<d', ARGV[1])
if awaited > 0 and now > awaited then
  return format('late %.0f', now)
end

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

--@include change_gcra.lua

local function windowed(line, s, units, take)
  local mode, pw, pe, end_w, end_e, pos = unpack('<ddddd', line, 42)
  local changed = false
  local w, e, used
  if s then
    local found = fields(s, 2)
    w, e = instant(found[1])
    used = tonumber(found[2])
    if not after(w, e, now, 0) then
      used = nil
    elseif units > 0 and w == end_w and e == end_e then
      used, changed = used > units and used - units or nil, true
    end
  end
  if take > 0 then
    if not used then
      w, e = window_end(now, mode, pw, pe, line, pos)
      if not w then
        return '?'
      end
    end
    used, changed = (used or 0) + take, true
  end
  if not changed then
    return true, false
  end
  if not used then
    return true, true, nil, 0
  end
  return true, true, format('%s:%.0f', said(w, e), used), up(w, e)
end

local function sliding(line, s, units, take)
  local pw, pe, end_w, end_e = unpack('<dddd', line, 42)
  local qw, qe = pw, pe
  if s then
    qw, qe = instant(fields(s, 4)[2])
  end
  local changed = false
  local w, e, current, previous, capped = counters(s, qw, qe)
  if s and units > 0 and qw == pw and qe == pe and not capped then
    local before_w, before_e = less(w, e, pw, pe, 1000)
    if not after(w, e, end_w, end_e) then
      current, changed = max(0, current - units), true
    elseif before_w == end_w and before_e == end_e then
      previous, changed = max(0, previous - units), true
    end
  end
  if not changed and take == 0 then
    return true, false
  end
  local value, us = counted(w, e, qw, qe, current + take, previous)
  return true, true, value, us
end

local function log(line, s, units, take)
  local pw, pe, at_w, at_e = unpack('<dddd', line, 42)
  local all, changed = {}, take > 0
  local gone_w, gone_e = plus(at_w, at_e, pw, pe)
  local found = s and fields(s, 0, 2) or {}
  for i = 1, #found, 2 do
    local w, e = instant(found[i])
    local left = tonumber(found[i + 1])
    if units > 0 and w == at_w and e == at_e and after(gone_w, gone_e, now, 0) then
      left, changed = left - units, true
    end
    if left > 0 then
      all[#all + 1] = {w, e, left}
    end
  end
  if not changed then
    return true, false
  end
  if take > 0 then
    arrive(all, take)
  end
  local value, us = logged(all, pw, pe)
  return true, true, value, us
end

local function concurrent(line, s, units, take, renew)
  local pw, pe, end_w, end_e, pos = unpack('<dddd', line, 42)
  local token = sub(line, pos)
  local leases = live_leases(s)
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
  if renew then
    table.sort(leases, by_expiry)
  end
  local value, us = leased(leases)
  return true, true, value, us
end

local function growing(line, s, units, take)
  local gw, ge, at_w, at_e = unpack('<dddd', line, 42)
  local made, w, e = attempts(s, gw, ge)
  local changed = take > 0
  local gone_w, gone_e = plus(at_w, at_e, gw, ge)
  if units > 0 and made > 0 and not after(at_w, at_e, w, e) and after(gone_w, gone_e, now, 0) then
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
  [117] = undo,
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
for at = 9, #ARGV[1], 2 do
  local low, high = byte(ARGV[1], at, at + 1)
  local first = last + 1
  last = last + low + high * 256
  local said_of, writes = '', {}
  for i = first, last do
    local line, s = ARGV[i + 1], read(KEYS[i])
    local fine, in_time, changed, value, us
    if s ~= ' ' then
      fine, in_time, changed, value, us = pcall(applied, line, s)
    end
    if not fine or in_time == '?' then
      said_of = fine and '?' or '!' .. i - first
      writes = {}
      break
    end
    said_of = said_of .. (in_time and '1' or '0')
    if changed then
      writes[#writes + 1] = {KEYS[i], value, us}
    end
  end
  for _, one in ipairs(writes) do
    keep(one[1], one[2], one[3])
  end
  reply[#reply + 1] = said_of
end
return table.concat(reply, ' ')
