-- Write a state only if nobody has written another since it was read. KEYS[1]: its key. ARGV: the value read, the new one (empty:
-- forget it), the instant from which it may be forgotten in ms since 1970 (below 0: that many ms from now). Returns 1 or 0.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
local ms = tonumber(ARGV[3])
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
elseif ms < 0 then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', -ms)
else
  redis.call('SET', KEYS[1], ARGV[2], 'PXAT', ms)
end
return 1
