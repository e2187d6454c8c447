# what: chromium, headless, with its own sandbox: a screenshot of a page
# needs: chromium
# user: ordinary
# limit: 60
# of: shot.png page.html circle.svg
echo '<html><body><h1>hello</h1><img src=circle.svg></body></html>' >page.html
echo '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><circle r="9" cx="9" cy="9"/></svg>' >circle.svg
chromium --headless=new --disable-gpu --no-first-run --user-data-dir="$HOME/c" --screenshot="$PWD/shot.png" --window-size=300,200 "file://$PWD/page.html" >/dev/null 2>&1; echo $?
