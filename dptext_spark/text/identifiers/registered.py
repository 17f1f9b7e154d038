"""Names that say nothing of anybody: registered schemes of URLs, and top-level labels of the domain name system.

Facts of the public registries of IANA: the permanent and the usual provisional schemes, the old generic labels, and the labels of
countries. A fake keeps these alone; a list that lacks a name only fakes more.
"""

# Lists of many short words are easier to read in lines.
# ruff: noqa: SIM905
from __future__ import annotations

from functools import cache

import numpy as np

from dptext_spark.arrays import U8

SCHEMES = (
    "about acap acct coap coaps crid data dav dict dns file ftp geo git go gopher h323 http https iax icap im imap info ipp "
    "ipps iris irc ircs jabber ldap ldaps magnet mailto mid mms msrp msrps mtqp nfs news nntp pop pres rsync rtmp rtsp rtsps "
    "rtspu sftp sip sips smb sms snmp ssh stun stuns svn tel telnet tftp tip turn turns tv udp urn vemmi vnc ws wss xmpp"
).split()
GENERIC = ["com", "org", "net", "edu", "gov", "mil", "int", "info", "biz", "app", "dev"]
COUNTRIES = (
    "ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bv bw by bz ca cc cd cf "
    "cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj fk fm fo fr ga gb gd ge gf gg "
    "gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp "
    "kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne "
    "nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sj sk "
    "sl sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz va vc ve vg vi vn "
    "vu wf ws ye yt za zm zw"
).split()


def _table(names: list[str]) -> U8:
    """Return uint8[n, m], the names filled with zeros."""
    return np.array([list(name.encode().ljust(max(map(len, names)), b"\0")) for name in names], np.uint8)


@cache
def schemes() -> U8:
    """Return the schemes, uint8[n, m], each filled with zeros."""
    return _table(SCHEMES)


@cache
def labels() -> U8:
    """Return the top-level labels, uint8[n, m], each filled with zeros."""
    return _table([*GENERIC, *COUNTRIES])
