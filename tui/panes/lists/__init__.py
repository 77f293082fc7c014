"""The lists with a cursor of the screens over the dashboard, of which the dashboard has a pane without one."""
