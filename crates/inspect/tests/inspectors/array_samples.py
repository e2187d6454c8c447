"""Samples of HDF5 and NetCDF, made and read by h5py and netCDF4."""

import h5py
import netCDF4
import numpy

from expectation import expect


def plain(value):
    """An attribute's value as JSON has it."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, numpy.ndarray):
        return [plain(one) for one in value.tolist()]
    value = value.item() if isinstance(value, numpy.generic) else value
    return int(value) if isinstance(value, float) and value == int(value) else value


def hierarchies():
    def make(path, value, unit, libver):
        with h5py.File(path, "w", libver=libver, track_order=False) as file:
            file.attrs["title"] = "A run"
            file.attrs["version"] = numpy.int32(3)
            file.attrs["steps"] = numpy.array([0.5, 1.5], dtype=">f8")
            grid = numpy.arange(600, dtype=numpy.float32).reshape(20, 30)
            grid[3, 4] = value
            packed = file.create_dataset(
                "fields/grid", data=grid, chunks=(5, 10), compression="gzip", shuffle=True, fletcher32=True
            )
            packed.attrs["unit"] = unit
            file["fields/counts"] = numpy.array([3, -1, 70000], dtype=">i4")
            file.create_dataset("names", data=["Ada", "Bär"], dtype=h5py.string_dtype())
            file.create_dataset("fixed", data=numpy.array([b"ab", b"c"]))
            pairs = numpy.array([(1, 2.5)], dtype=[("a", "i2"), ("b", "f8")])
            file.create_dataset("pairs", data=pairs)
            file.create_dataset("empty", shape=(0, 3), dtype="i8", maxshape=(None, 3))
            file.create_dataset("lists", shape=(2,), dtype=h5py.vlen_dtype("i4"))
            file.create_dataset("huge", shape=(1 << 40,), dtype="f8", chunks=(1024,))
            # Links that lead back, to nothing, and out of the file.
            file["fields/again"] = file["/"]
            file["soft"] = h5py.SoftLink("/nowhere")
            file["outside"] = h5py.ExternalLink("absent.h5", "/x")

    for name, libver in [("hdf5", "earliest"), ("hdf5 with the newest form", "latest")]:
        old, new = f"old-{libver}.h5", f"new-{libver}.h5"
        make(old, 1.0, "K", libver)
        make(new, 1.5, "C", libver)
        shapes, minima, attributes = {}, {}, []
        with h5py.File(old) as read:

            def visit(path, found):
                owner = "/" if path == "" else f"/{path}"
                attributes.extend(
                    {"name": f"{owner}@{key}", "value": plain(value)} for key, value in found.attrs.items()
                )
                if isinstance(found, h5py.Dataset):
                    shapes[f"/{path}"] = list(found.shape)
                    if found.dtype.kind in "if" and 0 < found.size < 1000:
                        minima[f"/{path}"] = float(found[...].min())

            visit("", read)
            read.visititems(visit)
            names = sorted(shapes)
        facts = {
            "shapes_of_datasets": shapes,
            "minima_of_datasets": minima,
            "sorted_attributes": sorted(attributes, key=lambda one: one["name"]),
            "names_of_datasets": names,
        }
        sentences = [
            "`/fields/grid`: 1 of 600 elements changed, by at most 0.5",
            "1 attribute changed: `/fields/grid@unit` K → C",
        ]
        expect(name, old, new, facts, sentences)


def climate():
    forms = {"netcdf": "NETCDF3_CLASSIC", "netcdf with 64 bits": "NETCDF3_64BIT_DATA", "netcdf with groups": "NETCDF4"}
    for name, form in forms.items():
        old, new = f"old-{form}.nc", f"new-{form}.nc"
        for path, value in [(old, 2.5), (new, 3.0)]:
            with netCDF4.Dataset(path, "w", format=form) as file:
                file.title = "A model"
                file.createDimension("time", None)
                file.createDimension("x", 3)
                heat = file.createVariable("heat", "f4", ("time", "x"))
                heat.units = "K"
                heat.range = numpy.array([0.0, 9.5])
                heat[:] = [[1, 2, 3], [value, 5, 6]]
                file.createVariable("place", "i2", ("x",))[:] = [4, -5, 6]
                file.createVariable("label", "S1", ("x",))[:] = numpy.array([b"a", b"b", b"c"])
                if form == "NETCDF4":
                    inner = file.createGroup("inner")
                    inner.createVariable("deep", "i8", ("x",))[:] = [7, 8, 9]
        shapes, minima, attributes = {}, {}, []
        with netCDF4.Dataset(old) as read:
            read.set_auto_mask(False)
            dimensions = {one.name: one.size for one in read.dimensions.values()}

            def visit(prefix, group):
                attributes.extend(
                    {"name": f"{prefix}@{key}", "value": plain(group.getncattr(key))} for key in group.ncattrs()
                )
                for key, one in group.variables.items():
                    path = f"{prefix}{key}"
                    shapes[path] = list(one.shape)
                    attributes.extend({"name": f"{path}@{a}", "value": plain(one.getncattr(a))} for a in one.ncattrs())
                    if one.dtype.kind in "if":
                        minima[path] = float(one[...].min())
                for key, one in group.groups.items():
                    visit(f"{prefix}{key}/", one)

            visit("", read)
        facts = {
            "shapes_of_variables": shapes,
            "minima_of_variables": minima,
            "sizes_of_dimensions": dimensions,
            "sorted_attributes": sorted(attributes, key=lambda one: one["name"]),
        }
        expect(name, old, new, facts, ["`heat`: 1 of 6 elements changed, by at most 0.5"])
