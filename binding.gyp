# A package with this file is compiled by npm when it is installed: so it is not published.
{'includes': ['native/exitwatch.gypi']}
