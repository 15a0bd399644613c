// The dev server of Vite 5 to 7 bundles dependencies into one file each, which loses the files beside this package's.

export default { optimizeDeps: { exclude: ['@hanzo/edge'] } };
