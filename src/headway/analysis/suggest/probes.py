"""Paths that nobody asks for who does not look for holes."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = ["is_probe"]

_PROBES: Final = re.compile(
    r"""
    /\.(?:env|git|svn|hg|aws|ssh|docker|vscode|idea|DS_Store|htpasswd|htaccess|npmrc|kube|config|bash_history|s3cfg)\b
    | /(?:wp-(?:login|config|cron|signup|trackback|admin|content|includes|json)|xmlrpc\.php|wlwmanifest\.xml|wordpress/)
    | /(?:php-?my-?admin|phpmyadmin[^/]*|pma|myadmin|mysqladmin|sqladmin|adminer(?:-[^/]*)?|dbadmin)(?:/|\.php|$)
    | (?:phpinfo|eval-stdin|shell|c99|r57|webshell|alfa|wso|filemanager|setup-config|think|info|test)\.php$
    | /vendor/(?:phpunit|composer)
    | /cgi-bin/ | /boaform/ | /HNAP1 | /GponForm | /setup\.cgi | /goform/ | /nmaplowercheck | /sdk$ | /evox/
    | /actuator(?:/|$) | /jolokia | /solr/ | /manager/html | /jmx-console | /invoker/ | /struts | /console/login
    | /_ignition/ | /telescope/ | /_profiler/ | /debug/(?:default|pprof) | /server-status | /geoserver/ | /druid/
    | /owa/auth | /ecp/ | /autodiscover/ | /remote/login | /dana-na/ | /\+CSCOE\+ | /vpn/\.\.
    | /etc/passwd | /proc/self | /win\.ini | \.\./ | %2e%2e | %252e | /\.\. | jndi:
    | /(?:backup|dump|database|db|site|www|html|data|old|bak)[^/]*\.(?:sql|zip|tar|gz|tgz|rar|7z|bak)(?:\.gz)?$
    | \.(?:sql|bak|swp|pem|key|old|orig)$
    | /(?:credentials|secrets?|id_rsa|aws-?keys?)(?:\.\w+)?$ | /config\.(?:json|php|yml|yaml|inc)$
    | (?:mstshell|jaws|boaform|luci/;stok|\\x[0-9a-f]{2})
    """,
    re.IGNORECASE | re.VERBOSE,
)


@lru_cache(maxsize=8192)  # a log's lines share their paths
def is_probe(path: str) -> bool:
    """Whether a path is one that scanners ask every server for. On a server that has it, such as a blog, it is not."""
    return _PROBES.search(path[:500]) is not None
