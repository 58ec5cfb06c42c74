"""The pictures room draws what `inkling.figures` describes, by hand and in one way: as SVG (`lines`, `bars`, `clouds`,
`heatmaps`, `panels`), as HTML around it (`markup`), for a notebook (`notebook`) and as letters for a terminal
(`letters`). It stands below all other rooms, so that whatever has a result can be looked at.
"""
