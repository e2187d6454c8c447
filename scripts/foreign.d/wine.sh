# what: wine runs Windows programs: their address layout, its server, a registry, files in and out
# needs: /usr/lib/wine/wine64
# limit: 280
# of: out.txt in.txt
printf 'from windows\r\n' >in.txt
wine=/usr/lib/wine/wine64
export WINEPREFIX=$HOME/wine WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml=" DISPLAY=
timeout $((200 * FOREIGN_PATIENCE)) "$wine" wineboot -i >/dev/null 2>&1; echo "boot $?"
timeout $((40 * FOREIGN_PATIENCE)) "$wine" cmd /c 'type in.txt > out.txt & echo %ERRORLEVEL% & copy in.txt copied.txt & del copied.txt & ver & exit 7' 2>/dev/null; echo "$?"; cat out.txt
timeout $((40 * FOREIGN_PATIENCE)) "$wine" reg add 'HKCU\Software\Backstory' /v Key /d value /f 2>/dev/null; timeout $((40 * FOREIGN_PATIENCE)) "$wine" reg query 'HKCU\Software\Backstory' 2>/dev/null; echo $?
timeout $((40 * FOREIGN_PATIENCE)) /usr/lib/wine/wineserver64 -k -w; true
